"""The history: SQLite by sqlite-utils. The only place that knows SQL."""

from playground.workers import Workers

from .history import History, Listed
from .results import Result
from .search import Filters
from .summaries import Summary
from .unreadable import readable

# Writing waits for no visitor who reads, and is not faster with more threads: SQLite has one writer.
READERS = Workers("history-reader", 4, waiting=128)
WRITERS = Workers("history-writer", 2)

__all__ = ["READERS", "WRITERS", "Filters", "History", "Listed", "Result", "Summary", "readable"]
