"""How a process ended, where no exception says why."""

from __future__ import annotations

from playground.engine.failures import remedy_rules

from .cause import Cause

# A process that a signal ended leaves no message, only the signal's number.
DIED = r"(?:Failed core proc\(s\): \{.{0,200}?: |died unexpectedly \(exit code: |exitcode[=:] ?)"
EXIT = r"(?:exited with code|[Ee]xit [Cc]ode:?|\"ExitCode\":|exited with status) {1,8}"
# systemd names the signal.
SIGNALLED = r"code=(?:killed|dumped), status="

CAUSES = (
    Cause(
        "oom_killed",
        changes=remedy_rules.less_memory,
        line=r"Out of memory: Kill(?:ed)? process|[Mm]emory cgroup out of memory"
        r"|OOMKilled(?!\W{1,4}false)|oom[-_]kill|oom_reaper"
        r"|killed by the OOM killer|PBS: job killed: mem|TERM_MEMLIMIT|exceeded memory limit.{0,80}being killed",
    ),
    Cause(
        "killed",
        changes=remedy_rules.less_memory,
        line=DIED + r"-9\b|" + SIGNALLED + r"9/|" + EXIT + r"137\b|(?:^|\s)Killed(?:: 9)?$|signal: killed"
        # A shell names the job.
        r"|: line \d+: +\d+ Killed\b|^\[\d+\][ +-]+(?:\d+ +)?[Kk]illed\b",
    ),
    Cause(
        "illegal_instruction",
        line=DIED + r"-4\b|" + EXIT + r"132\b|\bIllegal instruction\b|Fatal Python error: Illegal",
    ),
    Cause(
        "bus_error", line=DIED + r"-7\b|" + EXIT + r"135\b|Bus error(?: \(core dumped\))?|Fatal Python error: Bus"
    ),
    Cause(
        "crashed",
        line=DIED + r"(?P<code>-(?!15\b|2\b)\d+)|" + EXIT + r"(?P<status>139|134)\b|" + SIGNALLED + r"(?:11|6)/\w+"
        r"|(?:Segmentation fault|Fatal Python error: (?:Segmentation fault|Aborted)|Aborted \(core dumped\)"
        r"|terminate called (?:after|without))",
    ),
    # An exception that is none of the others.
    Cause("other"),
    # A server goes on after it.
    Cause("request_failed"),
    Cause(
        "stopped",
        line=DIED + r"-(?:15|2)\b|" + EXIT + r"143\b|[Rr]eceived (?:signal|SIG)(?:TERM|INT| 15| 2)\b"
        # Slurm, Kubernetes
        r"|CANCELLED AT \d{4}-|PBS: job killed: walltime|failed (?:startup|liveness) probe, will be restarted",
    ),
    Cause("ready_timeout", line=r"Timed out waiting for engine.+? to start\b"),
    # A core that ended without one; an exit code that says nothing; a start that was given up.
    Cause("core_died", line=r"Engine core initialization failed|EngineDeadError|EngineCore encountered an issue"),
    Cause("unknown", line=EXIT + r"(?P<code>[1-9]\d{0,2})\b"),
    Cause("timeout", changes=remedy_rules.without_slow_stages),
)
# 128 + n where signal n ended the server itself.
SIGNALS = {137: "killed", 132: "illegal_instruction", 135: "bus_error", 139: "crashed", 134: "crashed"}
