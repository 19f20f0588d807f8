"""GPUs, their drivers, what they can do, and how they reach each other."""

from __future__ import annotations

from playground.engine.failures import remedy_rules

from .cause import Cause
from .memory import ERROR

CAUSES = (
    Cause(
        "driver_too_old",
        r"The NVIDIA driver on your system is too old"
        r"|CUDA driver version is insufficient for CUDA runtime version"
        r"|forward compatibility was attempted on non supported HW"
        r"|system has unsupported display driver / cuda driver combination"
        r"|provided PTX was compiled with an unsupported toolchain",
        line=r"CUDA driver version is insufficient for CUDA runtime version"
        r"|unsatisfied condition: (?:cuda|driver|brand)\S*",
    ),
    Cause(
        "no_kernels",
        r"no kernel image is available|cudaErrorNoKernelImageForDevice|device kernel image is invalid"
        r"|cudaErrorInvalidDeviceFunction|invalid device function"
        r"|Value 'sm_\w+' is not defined for option 'gpu-name'"
        r"|No supported CUDA architectures found|No compiled \w+ for (?:CUDA device|a) (?:compute )?capability"
        r"|is not compatible with the current PyTorch installation"
        r"|(?:not compiled|was not built|isn't built) (?:for|with) (?:SM|sm_)",
        line=r"FATAL: kernel .{1,80} is for sm\S*, but was built for sm\S*"
        r"|Value 'sm_\w+' is not defined for option 'gpu-name'",
    ),
    Cause(
        "fp8",
        r"type fp8\w+ not supported in this architecture|fp8\w* data type is not supported"
        r"|Unsupported conversion from '?f8\w+"
        r"|torch\._scaled_mm is only supported on "
        r"|native FP8"
        r"|\b[Ff][Pp]8\b.{0,120}(?:not supported|unsupported|requires?|only supported|needs)"
        r".{0,120}(?:capability|GPU|device|architecture|sm_?\d\d|SM\d\d|Hopper|Ada|[Hh]ardware)"
        r"|The quantization method \S*fp8\S* is not supported for the current GPU",
        remedy_rules.without_fp8,
    ),
    Cause("bfloat16", r"Bfloat16 is only supported on GPUs", remedy_rules.set_to("knobs.dtype", "float16")),
    Cause(
        "duplicate_gpu",
        r"Duplicate GPU detected",
        line=r"Duplicate GPU detected",
    ),
    Cause(
        "device_missing",
        r"invalid device ordinal|CUDA_VISIBLE_DEVICES|int\(\) with base 10: '(?:GPU|MIG)-"
        r"|device >= 0 && device < num_gpus",
        remedy_rules.one_part,
    ),
    Cause("needs_gpu", r"pin_memory=True requires a CUDA", remedy_rules.without_gpu),
    Cause(
        "no_gpu",
        r"No (?:CUDA|HIP) GPUs are available|no CUDA-capable device is detected"
        r"|Found no NVIDIA driver on your system|libcuda\.so\S*: cannot open shared object file"
        r"|NVMLError_(?:DriverNotLoaded|LibraryNotFound)|system not yet initialized"
        r"|Failed to infer device type|Device string must not be empty|NVML Shared Library Not Found"
        r"|CUDA unknown error|CUDA driver initialization failed|Torch not compiled with CUDA enabled"
        r"|'/dev/(?:nvidia|kfd|dri)|Current node has no \w+ available",
        line=r"could not select device driver|nvidia-container-cli: "
        r"|libcuda\.so\S*: cannot open shared object file|Failed to initialize NVML: ",
    ),
    Cause(
        "gpu_fault",
        rf"(?:{ERROR}(?:an illegal (?:memory access|instruction)|unspecified launch failure"
        r"|misaligned address|device-side assert|uncorrectable ECC|the launch timed out)"
        r"|CUDA error: uncorrectable|CUBLAS_STATUS_EXECUTION_FAILED)",
        line=r"NVRM: Xid|(?:has )?fallen off the bus",
    ),
    Cause(
        "peers_unreachable",
        r"The client socket has (?:timed out|failed)|Gloo connectFullMesh failed"
        r"|[Uu]nable to (?:find|resolve).{0,120}(?:address|interface)"
        r"|(?:no socket interface found|Bootstrap : no|socket(?:Start|Poll)Connect)"
        r"|connect\(\) timed out|wait timeout after \d+ms.{0,120}(?:TCPStore|store)"
        r"|ncclRemoteError|DistNetworkError.{0,120}(?:connect|reach)",
        line=r"NCCL WARN (?!.*(?:closed|reset) by).{0,120}"
        r"(?:[Cc]onnect|[Ss]ocket|Bootstrap|no socket interface|[Tt]imed? ?out)",
    ),
    Cause(
        "nccl",
        r"(?:NCCL|RCCL|HCCL) (?:error|Error)|nccl(?:System|Internal|UnhandledCuda)Error"
        r"|DistBackendError",
        line=r"Watchdog caught collective operation timeout",
        vague=True,
    ),
)
