"""Trains the draft model of this folder for SmolLM2-135M-Instruct, on text that SmolLM2 itself writes.

    python train.py write TARGET TEXT --requests 60000       (vLLM and a GPU: a few minutes)
    python train.py train TARGET TEXT DRAFT --minutes 10     (PyTorch, transformers and a GPU)

SmolLM2 first writes what a user might ask, then answers it, mostly at temperature 0. The draft's embeddings
begin as the target's, projected on their strongest directions; it learns the target's whole distribution of
each next token, and its first choice. The share of first choices that it shares on text that was held out is
printed: about the rate at which its first token is accepted at temperature 0.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

SYSTEM = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    "<|im_start|>user\n"
)
# How requests begin; nothing: as SmolLM2 likes.
BEGINNINGS = (
    *[""] * 3, "Explain", "Write", "What is", "How", "Why", "Summarize", "Rewrite", "Translate", "List",
    "Describe", "Give me", "Can you", "Tell me", "Compare", "Write a Python function", "Fix this code",
    "Write a story",
    "Calculate", "Solve", "Correct the grammar", "Copy this text", "Write an email", "Who was", "Which",
)  # fmt: skip
ASKED, ANSWERED, HELD_OUT = 160, 320, 0.01
GREEDY = 0.7
WIDTH, LAYERS, HEADS, INNER = 128, 3, 2, 384
LENGTH, BATCH, RATE, WARM_UP = 512, 48, 3e-3, 200
# Of the loss, the rest is the distance to the target's distribution.
FIRST_CHOICE = 0.3


def write(target: str, text: Path, requests: int) -> None:
    """Writes `text`.npy (tokens of all conversations, end to end) and `text`.json (how many there are)."""
    from vllm import LLM, SamplingParams

    llm = LLM(target, max_model_len=1024, max_num_seqs=min(requests, 1024), gpu_memory_utilization=0.8, seed=0)
    beginnings = [SYSTEM + BEGINNINGS[number % len(BEGINNINGS)] for number in range(requests)]
    asking = SamplingParams(temperature=1.0, top_p=0.95, max_tokens=ASKED, stop=["<|im_end|>", "<|im_start|>"])
    asked = {
        begun + output.outputs[0].text.rstrip() + "<|im_end|>\n<|im_start|>assistant\n": None
        for begun, output in zip(beginnings, llm.generate(beginnings, asking), strict=True)
        if output.outputs[0].finish_reason == "stop"
    }
    print(f"{len(asked)} different requests", flush=True)
    greedy = SamplingParams(temperature=0.0, max_tokens=ANSWERED)
    warm = SamplingParams(temperature=0.8, max_tokens=ANSWERED)
    choices = [greedy if number % 10 < 10 * GREEDY else warm for number in range(len(asked))]
    tokens: list[int] = []
    for output in llm.generate(list(asked), choices):
        tokens += [*output.prompt_token_ids, *output.outputs[0].token_ids]
    np.save(text.with_suffix(".npy"), np.array(tokens, dtype=np.uint16))
    text.with_suffix(".json").write_text(json.dumps({"conversations": len(asked), "tokens": len(tokens)}))
    print(f"{len(tokens):,} tokens", flush=True)


def train(target: str, text: Path, draft: Path, minutes: float, device: str, batch: int) -> None:
    """Writes the draft's folder: config.json and model.safetensors."""
    import torch
    from torch.nn.functional import cross_entropy, kl_div, log_softmax
    from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    teacher = AutoModelForCausalLM.from_pretrained(target, dtype=torch.bfloat16).to(device).eval()
    own = teacher.config
    config = LlamaConfig(
        vocab_size=own.vocab_size, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=HEADS, head_dim=64, tie_word_embeddings=True,
        max_position_embeddings=own.max_position_embeddings, rms_norm_eps=own.rms_norm_eps,
        rope_parameters=own.rope_parameters,
        bos_token_id=own.bos_token_id, eos_token_id=own.eos_token_id, pad_token_id=own.pad_token_id,
    )  # fmt: skip
    student = LlamaForCausalLM(config).to(device)
    with torch.no_grad():
        weights = teacher.get_input_embeddings().weight.float()
        _, _, directions = torch.linalg.svd(weights.T @ weights)
        projected = weights @ directions[:WIDTH].T
        student.get_input_embeddings().weight.copy_(projected * (0.05 / projected.std()))
    print(f"{sum(p.numel() for p in student.parameters()):,} parameters", flush=True)
    tokens = torch.from_numpy(np.load(text.with_suffix(".npy")).astype(np.int64))
    tokens = tokens[: len(tokens) // LENGTH * LENGTH].view(-1, LENGTH)
    order = torch.randperm(len(tokens))
    held = tokens[order[: max(1, int(HELD_OUT * len(tokens)))]]
    seen = tokens[order[len(held) :]] if len(tokens) > 1 else held
    optimizer = torch.optim.AdamW(student.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    began, step = time.monotonic(), 0

    def logits(model: torch.nn.Module, block: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype=torch.bfloat16):
            out: torch.Tensor = model(block).logits
        return out.flatten(0, 1)

    def shared() -> float:
        """How often both make the same first choice, on what was held out."""
        with torch.no_grad():
            rows = [
                (
                    logits(teacher, part.to(device)).argmax(-1) == logits(student, part.to(device)).argmax(-1)
                ).float()
                for part in held[:256].split(16)
            ]
        return torch.cat(rows).mean().item()

    while (share := (time.monotonic() - began) / (60 * minutes)) < 1:
        rate = RATE * min((step + 1) / WARM_UP, 0.5 * (1 + math.cos(math.pi * share)) + 0.01)
        for group in optimizer.param_groups:
            group["lr"] = rate
        block = seen[torch.randint(len(seen), (batch,))].to(device, non_blocking=True)
        with torch.no_grad():
            wanted = logits(teacher, block).float()
        given = logits(student, block).float()
        distance = kl_div(log_softmax(given, -1), log_softmax(wanted, -1), reduction="batchmean", log_target=True)
        loss = (1 - FIRST_CHOICE) * distance + FIRST_CHOICE * cross_entropy(given, wanted.argmax(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.3f}, first choice shared {shared():.3f}", flush=True)
        step += 1
    student.to(torch.bfloat16).save_pretrained(draft)
    (draft / "generation_config.json").unlink(missing_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        content = json.loads((Path(target) / name).read_text())
        if merges := content.get("model", {}).get("merges"):
            content["model"]["merges"] = [" ".join(pair) for pair in merges]
        (draft / name).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")))
    passes = step * batch * LENGTH / max(1, seen.numel())
    print(f"{step} steps, {passes:.1f} passes; first choice shared on held-out text: {shared():.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name in ("write", "train"):
        verb = verbs.add_parser(name)
        verb.add_argument("target")
        verb.add_argument("text", type=Path)
        if name == "write":
            verb.add_argument("--requests", type=int, default=60_000)
        else:
            verb.add_argument("draft", type=Path)
            verb.add_argument("--minutes", type=float, default=10)
            verb.add_argument("--device", default="cuda")
            verb.add_argument("--batch", type=int, default=BATCH)
    arguments = parser.parse_args()
    if arguments.verb == "write":
        write(arguments.target, arguments.text, arguments.requests)
    else:
        given = arguments
        train(given.target, given.text, given.draft, given.minutes, given.device, given.batch)


if __name__ == "__main__":
    main()
