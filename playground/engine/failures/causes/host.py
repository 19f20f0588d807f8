"""What the host refuses: files, folders, /dev/shm, ports, limits."""

from __future__ import annotations

from .cause import Cause

CAUSES = (
    Cause(
        "open_files",
        r"Errno 24\]|Too many open files",
        line=r"Too many open files",
    ),
    Cause(
        "locked_memory",
        r"(?:memlock|MEMLOCK|mlock)|ibv_reg_mr.{0,120}(?:Cannot allocate memory|failed)",
        line=r"(?:memlock|MEMLOCK)|\bmlock\w* failed"
        r"|ibv_(?:reg_mr|create_\w+).{0,120}Cannot allocate memory",
    ),
    Cause(
        "processes",
        r"can't start new thread|Errno 11\] Resource temporarily unavailable|pthread_create failed"
        r"|fork.{0,120}Resource temporarily unavailable",
        line=r"pthread_create failed|RLIMIT_NPROC"
        r"|libgomp: Thread creation failed|fork: (?:retry: )?Resource temporarily unavailable",
    ),
    Cause(
        "shared_memory_folder",
        r"Errno (?:28|12)\].*(?:/dev/shm|/psm_|/torch_)\S*|insufficient shared memory \(shm\)"
        r"|unable to (?:open|mmap|resize|allocate|write) .{0,60}(?:shared memory|/torch_|/dev/shm)"
        r"|\bBus error\b.*shared memory.*",
        line=r"insufficient shared memory \(shm\)|Error while creating shared memory segment /dev/shm\S*.*"
        r"|Call to (?:posix_fallocate|ftruncate|mmap) failed.*No space left on device"
        r"|No space left on device.*/dev/shm\S*|/dev/shm\S*.*No space left on device",
    ),
    Cause(
        "shared_memory_folder",
        r"Errno (?:28|12)\]|No space left on device|Cannot allocate memory",
        frames=r"multiprocessing/(?:shared_memory|synchronize|heap)\.py|shm_broadcast|_new_shared|_share_f\w+_cpu",
    ),
    Cause("disk_quota", r"Errno 122\]|Disk quota exceeded"),
    Cause(
        "disk_full",
        r"^(?!.*(?:/dev/shm|/psm_|/torch_|shared memory)).*No space left on device|Not enough free disk space",
    ),
    Cause(
        "no_permission",
        r"Errno (?:13|1)\] (?:Permission denied|Operation not permitted): (?P<object>'(?!/dev/)[^'\n]+')",
    ),
    Cause("read_only", r"Errno 30\] Read-only file system: (?P<object>'[^'\n]+')"),
    Cause(
        "address_taken",
        r"Errno (?:98|48)\b|EADDRINUSE|[Aa]ddress already in use",
        line=r"[Aa]ddress already in use|port is already allocated",
    ),
    Cause("address_not_here", r"Errno 99\b|Cannot assign requested address"),
)
