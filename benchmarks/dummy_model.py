"""A model of a real one's shape without its weights, for `load_format = "dummy"`: real speed, meaningless text.

usage: python -m benchmarks.dummy_model SHAPE TOKENIZER_FOLDER DESTINATION
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

# From the models' own config.json. One vocabulary for all, as a target and its draft must share it.
VOCABULARY = 152_064
COMMON = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_act": "silu",
    "max_position_embeddings": 32_768,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": VOCABULARY,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
SHAPES: dict[str, dict[str, int | bool]] = {
    "qwen2.5-7b": {
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
    "qwen2.5-1.5b": {
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "qwen2.5-0.5b": {
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
}


def make(shape: str, tokenizer: Path, destination: Path) -> None:
    """The shape's configuration, and the tokenizer filled up with words that no text contains."""
    destination.mkdir(parents=True)
    (destination / "config.json").write_text(json.dumps({**COMMON, **SHAPES[shape]}, indent=1))
    for name in ("tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
        if (tokenizer / name).exists():
            shutil.copy(tokenizer / name, destination)
    document = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    words = document["model"]["vocab"]
    taken = max(*words.values(), *(token["id"] for token in document["added_tokens"])) + 1
    words |= {f"<unused-{number}>": number for number in range(taken, VOCABULARY)}
    (destination / "tokenizer.json").write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
