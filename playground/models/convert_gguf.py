"""Run by its path with a runtime's Python: a GGUF file becomes a model folder that vLLM serves.

usage: convert_gguf.py GGUF_FILE DESTINATION      (needs transformers, gguf and accelerate)
"""

import sys
from pathlib import Path


def main(source: Path, destination: Path) -> None:
    print("stage: importing", flush=True)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    print("stage: tokenizer", flush=True)
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    tokenizer.save_pretrained(destination)
    print("stage: weights", flush=True)
    model = AutoModelForCausalLM.from_pretrained(
        source.parent,
        gguf_file=source.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=torch.bfloat16,
    )
    print("stage: saving", flush=True)
    model.save_pretrained(destination)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
