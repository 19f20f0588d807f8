"""Memory: of the GPU, of the machine, what a kernel has, and what is pinned."""

from __future__ import annotations

from playground.engine.failures import remedy_rules

from .cause import Cause

OUT = r"(?:CUDA|HIP|XPU|GPU|NPU)"
ERROR = r"(?:(?:CUDA|HIP) (?:driver )?error: |Triton Error \[\w+\]: )"

CAUSES = (
    Cause(
        "kernel_shared_memory",
        r"out of resource: (?!tensor memory|registers|threads)|uses too much shared (?:data|memory)",
        remedy_rules.other_kernels,
    ),
    Cause(
        "kernel_resources",
        r"out of resource: (?:tensor memory|registers|threads)|too many resources requested for launch",
        remedy_rules.other_kernels,
    ),
    Cause(
        "pinned_memory",
        r"(?:[Pp]inned|pin_memory|pin memory|cudaHost(?:Alloc|Register)|CachingHostAllocator)"
        r".{0,200}(?:out of memory|failed|cannot|not enough|error)"
        r"|(?:failed to|cannot|could not) (?:pin|page-lock)",
        remedy_rules.less_offloading,
    ),
    Cause(
        "pinned_memory",
        rf"{ERROR}(?:out of memory|invalid argument|OS call failed)",
        remedy_rules.less_offloading,
        frames=r"pin_memory|cudaHostRegister|cudaHostAlloc",
    ),
    Cause(
        "kv_too_small",
        r"To serve at least one request with the models?'s max seq len \((?P<asked>\d+)\), "
        r"\(?(?P<needed>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory "
        r"\((?P<room>[\d.]+) GiB\)(?:.*estimated maximum model length is (?P<fits>\d+))?",
        remedy_rules.room_for_one_request,
    ),
    Cause(
        "kv_tokens",
        r"model's max seq len \((?P<asked>\d+)\) is larger than the maximum number of tokens that can be stored "
        r"in KV cache \((?P<fits>\d+)\)",
        remedy_rules.room_for_one_request,
    ),
    Cause("no_kv_memory", r"No available memory for the cache blocks", remedy_rules.room_for_kv),
    Cause(
        "gpu_busy",
        r"Free memory on device (?:\S+ )?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
        r"is less than desired GPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        remedy_rules.what_is_free,
    ),
    Cause(
        "gpu_changed",
        r"Error in memory profiling\. Initial free memory (?P<before>[\d.]+ ?\w*), current free memory "
        r"(?P<after>[\d.]+ ?\w*)",
    ),
    Cause(
        "cpu_busy",
        r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
        r"is less than desired CPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        remedy_rules.what_is_free,
    ),
    Cause(
        "cpu_kv",
        r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on kv cache allocation "
        r"is less than requested memory for kv \((?P<wanted>[\d.]+)",
        remedy_rules.kv_that_fits,
    ),
    Cause(
        "sampler_memory",
        rf"{OUT} out of memory occurred when warming up (?:sampler|pooler).+?with (?P<seqs>\d+) dummy requests",
        remedy_rules.fewer_sequences,
    ),
    Cause(
        "gpu_memory",
        rf"{OUT} out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)\.? (?:GPU \d+ has a total capacit?y of |"
        r"\(GPU \d+; )(?P<total>[\d.]+ \w+)(?: total capacity; .{0,80}?| of which )"
        r"(?P<free>[\d.]+ \w+) (?:is )?free",
        remedy_rules.by_stage,
    ),
    Cause(
        "gpu_full",
        rf"{OUT} out of memory|{ERROR}out of memory|(?<!ray\.exceptions\.)OutOfMemoryError"
        r"|(?:cuda|hip)ErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|CU(?:BLAS|DNN|SOLVER)_STATUS_ALLOC_FAILED",
        remedy_rules.by_stage,
        line=r"Cuda failure (?:2 )?'out of memory'|CUDA_ERROR_OUT_OF_MEMORY",
    ),
    Cause(
        "cpu_memory",
        r"can't allocate memory|Cannot allocate memory|MemoryError|std::bad_alloc"
        r"|Unable to allocate [\d.]+ \w+ for an",
        remedy_rules.less_memory,
        line=r"std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)",
    ),
)
