"""Which of a log's exceptions is the root: what the others only follow from, or only report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from .tracebacks import Chain, LoggedException

# What remains of an engine that has failed: the end of others, and of the interpreter.
WRAPPER = re.compile(
    r"Engine core initialization failed|EngineCore initialization failed|WorkerProc initialization failed"
    r"|Engine process failed to start|Engine loop (?:has died|is not running)"
    r"|\A(?:\w+\.)*(?:EngineDeadError|EngineGenerateError|SystemExit|KeyboardInterrupt|CancelledError|ExceptionGroup"
    r"|BaseExceptionGroup|ChildFailedError|RayTaskError|RayActorError|ActorDiedError|RemoteError|BrokenProcessPool"
    r"|MQEngineDeadError|AsyncEngineDeadError)\b"
    r"|Python is likely shutting down|at interpreter shutdown"
)
CONSEQUENCE = re.compile(
    r"\A(?:\w+\.)*(?:EOFError|BrokenPipeError|ConnectionResetError|ProcessLookupError)\b|: cancelled\Z"
    r"|Connection (?:closed|reset) by peer|remote process exit|RPC call to \w+ timed out"
    r"|No such file or directory: '/psm_\w+'|Executor failed|Worker failed with error|Timed out waiting for engine"
)


class Weight(IntEnum):
    """How much a chain of exceptions says of the cause; the smallest says most."""

    FATAL = 0
    RAISED = 1
    # A server goes on after a request that failed.
    REQUEST = 2
    CONSEQUENCE = 3
    WRAPPER = 4


def weight(chain: Chain) -> Weight:
    roots = [exception for exception in chain.exceptions if not WRAPPER.search(str(exception))]
    if not roots:
        return Weight.WRAPPER
    if all(CONSEQUENCE.search(str(exception)) for exception in roots):
        return Weight.CONSEQUENCE
    if chain.fatal:
        return Weight.FATAL
    return Weight.REQUEST if chain.request else Weight.RAISED


def root_chain(chains: Sequence[Chain]) -> Chain | None:
    """The first of those exceptions that say most of the cause. None: there are none."""
    return min(chains, key=weight, default=None)


# Classes of what is looked up and not there: where another exception follows, that one says why.
LOOKUPS = [
    "KeyError",
    "IndexError",
    "AttributeError",
    "ImportError",
    "ModuleNotFoundError",
    "StopIteration",
    "Empty",
    "LookupError",
    "FileNotFoundError",
    "TypeError",
]


def root_first(chain: Chain) -> list[LoggedException]:
    """The chain's exceptions, the one that says most of the cause first."""
    links = [link for link in chain.links if not WRAPPER.search(str(link[0]))] or chain.links
    for index, (exception, _) in enumerate(links[:-1]):
        followed_by_handling = links[index + 1][1]
        if not (followed_by_handling and exception.kind.rpartition(".")[2] in LOOKUPS):
            break
    else:
        index = max(0, len(links) - 1)
    rest = [exception for position, (exception, _) in enumerate(links) if position != index]
    return [links[index][0], *rest]
