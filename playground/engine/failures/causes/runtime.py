"""The runtime: compilers, libraries and packages around vLLM."""

from __future__ import annotations

from playground.engine.failures import remedy_rules

from .cause import Cause

CAUSES = (
    Cause(
        "no_nvcc",
        r"[Cc]ould not find (?:the )?nvcc|Could not find CUDA installation|nvcc: (?:command )?not found"
        r"|CUDA_HOME environment variable is not set|(?:No such file or directory|not found).{0,120}\bnvcc\b"
        r"|[Cc](?:annot|ould not) find ptxas|Permission denied: '[^'\n]*(?:ptxas|nvcc)",
        remedy_rules.without_compiling,
        line=r"nvcc: (?:command )?not found",
    ),
    Cause(
        "no_ninja",
        r"Ninja is required to load C\+\+ extensions|No such file or directory: '\S*ninja'",
        remedy_rules.without_compiling,
        line=r"ninja: (?:command )?not found",
    ),
    Cause(
        "compiler",
        r"InvalidCxxCompiler|No working C\+\+ compiler|Failed to find C compiler|Python\.h: No such file"
        r"|No such file or directory: '(?:gcc|g\+\+|cc|c\+\+|clang)'",
        remedy_rules.set_to("knobs.enforce_eager", True),
        line=r"fatal error: Python\.h: No such file",
    ),
    Cause(
        "linker",
        r"(?:cannot find|unable to find library) -l(?P<detail>\w+)",
        remedy_rules.without_compiling,
        line=r"(?:cannot find|unable to find library) -l(?P<detail>\w+)",
    ),
    Cause(
        "kernel_build",
        r"Ninja build failed|NVCC compilation failed|nvcc fatal"
        r"|(?:NVRTC|nvrtc|ptxas)\b.{0,120}(?:error|fatal)"
        r"|PTXASError|Internal Triton PTX codegen error",
        remedy_rules.without_compiling,
    ),
    Cause(
        "kernel_build",
        r"Error building extension"
        r"|Command '\[?'?\S{0,100}(?:gcc|g\+\+|clang|nvcc|ninja)\b.{0,400}returned non-zero exit status",
        remedy_rules.without_compiling,
        # What the compiler printed says more.
        vague=True,
    ),
    Cause(
        "binary_mismatch",
        r"cannot import name .{1,80} from '(?:transformers|torch|numpy|vllm|flashinfer|huggingface_hub)"
        r"|undefined symbol: |size changed, may indicate binary incompatibility"
        r"|compiled using NumPy 1\.x cannot be run in|numpy\.core\.multiarray failed to import"
        r"|operator \S+ does not exist|PyTorch and torchvision (?:has|have) different CUDA",
        line=r"undefined symbol: |compiled using NumPy 1\.x cannot be run in",
    ),
    Cause(
        "other_processor",
        r"Errno 8\] Exec format error|wrong ELF class",
        line=r"exec format error|cannot execute binary file: Exec format error",
    ),
    Cause(
        "system_library",
        r"version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found",
        line=r"version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found",
    ),
    Cause(
        "dependency",
        r"(?:ImportError|ModuleNotFoundError|PackageNotFoundError): (?P<detail>.+)"
        r"|\S\.so\S{0,20}: cannot open shared object file|Cannot find a working triton installation",
        remedy_rules.without_suffix,
        line=r"No module named [\w.'\"]+$|vllm: (?:command )?not found",
    ),
)
