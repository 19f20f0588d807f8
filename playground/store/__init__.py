"""The history: SQLite by sqlite-utils. The only place that knows SQL."""

from .history import History
from .summaries import Summary

__all__ = ["History", "Summary"]
