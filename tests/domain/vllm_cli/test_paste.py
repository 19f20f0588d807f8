"""Old names and pasted command lines: understood, translated, explained; never run, never "unknown argument"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import EngineSettings
from playground.domain.vllm_cli import paste
from playground.domain.vllm_cli.old_names import OLD_NAMES, modernised
from playground.i18n import LOCALES, say_message
from playground.ui.compare import paste_box

# seeds.md's table: what users type, and where it goes. None: nothing takes it.
SEEDS = {
    "speculative_model": ("d", "speculation.model"),
    "num_speculative_tokens": (3, "speculation.num_speculative_tokens"),
    "speculative_draft_tensor_parallel_size": (1, "speculation.draft_tensor_parallel_size"),
    "speculative_max_model_len": (512, "speculation.max_model_len"),
    "max_num_seqs": (48, "knobs.max_num_seqs"),
    "max_model_len": (4096, "knobs.max_model_len"),
    "gpu_memory_utilization": (0.85, "knobs.gpu_memory_utilization"),
    "max_prefill_tokens": (2048, "knobs.max_num_batched_tokens"),
    "block_size": (16, "knobs.block_size"),
    "swap_space": (4, None),
    "enable_prefix_caching": (True, "knobs.enable_prefix_caching"),
    "max_parallel_loading_workers": (2, None),
    "dynamic_request_policy": ("fair", None),
    "tensor_parallel_size": (2, "knobs.tensor_parallel_size"),
    "dtype": ("half", "knobs.dtype"),
    "quantization": ("awq", "knobs.quantization"),
    "kv_cache_dtype": ("fp8", "knobs.kv_cache_dtype"),
    "speculative_acceptance_rate": (0.6, None),
}


def at(settings: EngineSettings, key: str) -> object:
    found: Any = settings
    for part in key.split("."):
        found = getattr(found, part)
    return found


def typed(name: str, value: object) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return [flag] if value is True else [flag, str(value)]


@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("way", ["serve", "module", "python", "extra flags", "preset"])
def test_each_name_of_the_articles(name: str, way: str, tmp_path: Path) -> None:
    value, key = SEEDS[name]
    # A field of the speculation needs a draft to go with.
    draft = name.startswith(("spec", "num_spec")) and name not in (
        "speculative_model",
        "speculative_acceptance_rate",
    )
    given: dict[str, Any] = {**({"speculative_model": "d"} if draft else {}), name: value}
    words = [word for one, its in given.items() for word in typed(one, its)]
    if way in ("serve", "module", "python"):
        text = {
            "serve": f"vllm serve m {' '.join(words)}",
            "module": f"python3 -m vllm.entrypoints.openai.api_server --model m {' '.join(words)}",
            "python": f"LLM(model='m', {', '.join(f'{one}={its!r}' for one, its in given.items())})",
        }[way]
        settings, notes = paste.read(text).settings, paste.read(text).notes
    elif way == "extra flags":
        made, notes = modernised({"target": "m", "extra_flags": words}, where="A")
        settings = EngineSettings.model_validate(made)
        if name not in OLD_NAMES:
            # Today's own name stays where it was typed.
            assert settings.extra_flags == tuple(words)
            return
    else:
        place = [f"{one} = {str(its).lower() if its is True else repr(its)}" for one, its in given.items()]
        where = "common" if name in OLD_NAMES else "common.knobs"
        loaded = presets.load(str(_preset(tmp_path, where, place)))
        settings, notes = loaded.sides[0].engine, loaded.notes
    assert settings.extra_flags == ()
    if key is not None:
        expected = "float16" if value == "half" else value
        assert at(settings, key) == expected
    translated = name in OLD_NAMES or value == "half"
    said = [say_message(note, locale) for note in notes for locale in LOCALES]
    assert any(name in sentence for sentence in said) == translated
    if name in OLD_NAMES and key is not None:
        assert any(name in sentence and key.rpartition(".")[2] in sentence for sentence in said)


def _preset(folder: Path, where: str, lines: list[str]) -> Path:
    text = (Path(presets.FOLDER) / "gpu-memory-085-vs-095.toml").read_text(encoding="utf-8")
    head = text[: text.index("[common]")]
    own = "\n".join(lines)
    knobs = "" if where == "common" else "[common.knobs]\n"
    sides = '[[sides]]\nlabel = "A"\n[[sides]]\nlabel = "B"\n[sides.knobs]\nseed = 1\n[workload]\nprompt = "p"\n'
    path = folder / "mine.toml"
    path.write_text(f'{head}[common]\ntarget = "m"\n{knobs}{own}\n{sides}', encoding="utf-8")
    return path


@pytest.mark.parametrize("name", OLD_NAMES)
def test_every_old_name_is_explained_in_full(name: str) -> None:
    old = OLD_NAMES[name]
    for locale in LOCALES:
        sentence = say_message(old.explained(name), locale)
        assert name in sentence
        assert "{" not in sentence
    if old.now is not None:
        assert old.now.rpartition(".")[2] in sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm serve m -tp 2 -pp=2", {"knobs": {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}}),
        ("vllm serve m --max_num_seqs=8", {"knobs": {"max_num_seqs": 8}}),
        ("vllm serve m --no-enable-prefix-caching", {"knobs": {"enable_prefix_caching": False}}),
        ("vllm serve --model m --enforce-eager", {"knobs": {"enforce_eager": True}}),
        ("vllm serve m \\\n  --seed 1 \\  \n --dtype float", {"knobs": {"seed": 1, "dtype": "float32"}}),
        ("$ A=1 B='x y' vllm serve m --seed 1", {"knobs": {"seed": 1}}),
        ("/venv/bin/python3.12 -m vllm.entrypoints.openai.api_server --model m --seed 1", {"knobs": {"seed": 1}}),
        ("python -m vllm.entrypoints.cli.main serve m --seed 1", {"knobs": {"seed": 1}}),
        ("docker run --gpus all -p 1:1 vllm/vllm-openai:v0.26.0 --model m --seed 1", {"knobs": {"seed": 1}}),
        ("--model m --seed 1", {"knobs": {"seed": 1}}),
        ("vllm serve m --max-model-len 32k", {"knobs": {"max_model_len": 32000}}),
        ("vllm serve m --max-model-len 1K", {"knobs": {"max_model_len": 1024}}),
        ("vllm serve m --trust-remote-code", {"trust_remote_code": True}),
        ("vllm serve m --trust-remote-code=true", {"trust_remote_code": True}),
        ("vllm serve m --trust-remote-code=false", {}),
        ("vllm serve m --no-trust-remote-code", {}),
        ("LLM('m', trust_remote_code=True)", {"trust_remote_code": True}),
        ("LLM('m', trust_remote_code=False)", {}),
        (
            "vllm serve m --cpu-offload-gb 4 --enable-lora",
            {"extra_flags": ("--cpu-offload-gb", "4", "--enable-lora")},
        ),
        ("vllm serve m --seed 1 --seed 2", {"knobs": {"seed": 2}}),
        (
            """vllm serve m -sc '{"method": "eagle3", "model": "e", "num_speculative_tokens": 2}'""",
            {"speculation": {"model": "e", "num_speculative_tokens": 2}},
        ),
        (
            "vllm serve m --speculative-config.method suffix --speculative-config.num_speculative_tokens 9",
            {"speculation": {"num_speculative_tokens": 9}},
        ),
        # 5 is vLLM's own default for both, and not the playground's.
        (
            "vllm serve m --spec-method ngram --spec-tokens 2",
            {"speculation": {"num_speculative_tokens": 2, "prompt_lookup_min": 5}},
        ),
        ("vllm serve m --seed 1 # don't", {"knobs": {"seed": 1}}),
        ("# first\nvllm serve m \\  # it's; (this)\n --seed 1", {"knobs": {"seed": 1}}),
        (
            "vllm serve m --seed 1 --reasoning-parser '# x#'",
            {"knobs": {"seed": 1}, "extra_flags": ("--reasoning-parser", "# x#")},
        ),
        ("vllm serve m#1", {"target": "m#1"}),
        ("LLM('m', seed=1)", {"knobs": {"seed": 1}}),
        (
            "import vllm\nllm = vllm.LLM(model='m', speculative_config={'method': 'deepseek_mtp',"
            " 'num_speculative_tokens': 1})\nprint(llm)",
            {"speculation": {"num_speculative_tokens": 1}},
        ),
        (
            "LLM(model='m', speculative_model='[ngram]', num_speculative_tokens=4, ngram_prompt_lookup_max=3)",
            {"speculation": {"num_speculative_tokens": 4, "prompt_lookup_max": 3, "prompt_lookup_min": 3}},
        ),
        ("LLM('m', hf_overrides={'a': 1})", {"extra_flags": ("--hf-overrides", '{"a": 1}')}),
    ],
)
def test_pasted(text: str, expected: dict[str, Any]) -> None:
    shown = paste.read(text).settings.model_dump(exclude_none=True, exclude_defaults=True)
    assert shown == {"target": "m", **expected}


@pytest.mark.parametrize("method", ["draft_model", "eagle", "eagle3"])
def test_the_method_that_vllm_would_take(method: str) -> None:
    model = {"draft_model": "small", "eagle": "x/EAGLE-m", "eagle3": "x/m-Eagle3"}[method]
    found = paste.read(f"LLM('m', speculative_config={{'model': '{model}', 'num_speculative_tokens': 2}})")
    assert found.settings.speculation.method == method
    assert [note.message_id for note in found.notes] == ["paste.method"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("max-nums-seqs", "max-num-seqs"),
        ("gpu_memory_utilisation", "gpu-memory-utilization"),
        ("speculative-confg", "speculative-config"),
        ("cpu-offload-gb", None),
        ("max-num-scheduled-tokens", None),
    ],
)
def test_a_typo_is_told(typed: str, meant: str | None) -> None:
    found = paste.read(f"vllm serve m --{typed} 64")
    said = [say_message(note) for note in found.notes if note.message_id == "paste.typo"]
    assert said == ([f"--{typed.replace('_', '-')}: did you mean --{meant}?"] if meant else [])
    # It may be a flag that the runtime knows: it is kept, and refused where it starts.
    assert found.settings.extra_flags == (f"--{typed}", "64")


def test_secrets_are_not_repeated() -> None:
    found = paste.read("HF_TOKEN=hf_s3 vllm serve m --api-key sk-s3 --hf-token hf_s3")
    assert "s3" not in " ".join(say_message(note) for note in found.notes)
    assert "s3" not in str(found.settings)


def test_what_the_host_does_not_allow_is_left_out_and_said(config: Config) -> None:
    given = paste.read("vllm serve m --trust-remote-code --enable-lora").settings
    settings, notes = paste_box.allowed(config, given, "default")
    assert (settings.extra_flags, settings.trust_remote_code) == ((), False)
    assert [note.message_id for note in notes] == ["paste.extra_off", "paste.remote_code_off"]


def test_old_and_new_name_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        modernised({"knobs": {"max_num_batched_tokens": 4096, "max_prefill_tokens": 2048}}, where="A")
    assert caught.value.message_id == "old.given_twice"
    made, _ = modernised({"knobs": {"max_num_batched_tokens": 4096, "max_prefill_tokens": "4096"}}, where="A")
    assert str(made["knobs"]["max_num_batched_tokens"]) == "4096"
