"""Bad settings, presets, prompt files, pasted text, command lines, addresses and variables: each gives one clear
sentence that names the field, the value and what would be accepted; nothing is started or written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.preset_text import GOOD

from playground import presets, prompts
from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings
from playground.domain.spec.workload import Workload
from playground.domain.url import BaseUrl
from playground.domain.validation import validate
from playground.domain.vllm_cli import paste
from playground.i18n import LOCALES, say_message
from playground.store import History
from playground.ui.compare.side_values import side_of, values_of

# What pydantic, argparse and Python say in English.
FOREIGN = re.compile(
    r"[Ii]nput should|[Vv]alue error|[Ff]ield required|valid (integer|number|string|boolean)|greater than"
    r"|less than|characters|Traceback|not permitted|\bunable to\b|Expecting|invalid literal|No closing|\bNone\b"
)


def sentence_of(error: InvalidInput, *named: str) -> None:
    """One clear sentence in each language; of a file with several mistakes a line for each."""
    assert error.exit_code == 2
    for locale in LOCALES:
        said = say_message(error, locale)
        assert "\n" not in said or error.message_id == "preset.faults"
        assert said[-1] in ".?。？…", said
        assert len(said) < 700
        for name in named:
            assert name in said, said
        if locale == "zh-CN":
            assert re.search("[\u4e00-\u9fff]", said)
            assert not FOREIGN.search(said), said
    assert not FOREIGN.search(say_message(error).replace("characters", ""))


@pytest.fixture(autouse=True)
def nothing_happens(config: Config, monkeypatch: pytest.MonkeyPatch) -> Any:
    """No process, no run in the history, no folder."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr("subprocess.Popen", started)
    monkeypatch.setattr("asyncio.create_subprocess_exec", started)
    yield
    assert not (config.db.exists() and History(config.db).summaries())
    assert not config.models.exists()
    assert not list(config.state.iterdir())


# Settings: model, what was given, the field, the value as shown, what would be accepted.

KNOBS: list[tuple[str, Any, str]] = [
    ("max_num_seqs", 0, "at least 1"),
    ("max_num_seqs", -5, "at least 1"),
    ("max_num_seqs", "abc", "a whole number"),
    ("max_num_seqs", 1.5, "a whole number"),
    ("max_num_seqs", "1,000", "a whole number"),
    ("max_num_seqs", True, "not be true or false"),
    ("gpu_memory_utilization", True, "not be true or false"),
    ("max_num_seqs", [8], "a whole number"),
    ("max_num_batched_tokens", 0, "at least 1"),
    ("max_num_batched_tokens", "2k", "a whole number"),
    ("max_model_len", -2, "at least 1"),
    ("max_model_len", "automatic", "a whole number"),
    ("enable_chunked_prefill", "maybe", "true or false"),
    ("enable_chunked_prefill", 2, "true or false"),
    ("enable_prefix_caching", "on off", "true or false"),
    ("long_prefill_token_threshold", -1, "at least 0"),
    ("scheduling_policy", "lifo", "fcfs"),
    ("gpu_memory_utilization", 0, "above 0"),
    ("gpu_memory_utilization", 1.2, "at most 1"),
    ("gpu_memory_utilization", 85, "at most 1"),
    ("gpu_memory_utilization", "85%", "a number"),
    ("gpu_memory_utilization", float("nan"), "a number"),
    ("gpu_memory_utilization", float("inf"), "a number"),
    ("kv_cache_memory_bytes", 0, "at least 1"),
    ("kv_cache_memory_bytes", "4GiB", "a whole number"),
    ("kv_cache_dtype", 8, "text"),
    ("kv_offloading_size", 0, "above 0"),
    ("block_size", 0, "at least 1"),
    ("block_size", "sixteen", "a whole number"),
    ("dtype", "float64", "bfloat16"),
    ("dtype", "fp8", "bfloat16"),
    ("dtype", 16, "bfloat16"),
    ("quantization", 4, "text"),
    ("seed", -1, "at least 0"),
    ("seed", "9" * 5000, "too many digits"),
    *((knob, 10**400, "at most 9223372036854775807") for knob in ("max_num_seqs", "block_size", "seed")),
    ("long_prefill_token_threshold", 2**63, "at most 9223372036854775807"),
    *((knob, "x" * 201, "200") for knob in ("kv_cache_dtype", "quantization", "load_format")),
    ("attention_backend", "x" * 201, "200"),
    ("enforce_eager", "eager", "true or false"),
    ("tensor_parallel_size", 0, "at least 1"),
    ("pipeline_parallel_size", "two", "a whole number"),
    ("data_parallel_size", -2, "at least 1"),
    ("distributed_executor_backend", "mpi", "external_launcher"),
]
SPECULATION: list[tuple[dict[str, Any], str, str]] = [
    ({"method": "medusa"}, "method", "ngram"),
    ({"method": 3}, "method", "ngram"),
    ({}, "method", "missing"),
    ({"method": "draft_model"}, "model", "missing"),
    ({"method": "draft_model", "model": ""}, "model", "not be empty"),
    ({"method": "draft_model", "model": "a\nb"}, "model", "line breaks"),
    ({"method": "draft_model", "model": "x" * 2000}, "model", "1024"),
    ({"method": "ngram", "num_speculative_tokens": 0}, "num_speculative_tokens", "at least 1"),
    ({"method": "ngram", "num_speculative_tokens": 129}, "num_speculative_tokens", "at most 128"),
    ({"method": "ngram", "num_speculative_tokens": "five"}, "num_speculative_tokens", "a whole number"),
    ({"method": "ngram", "prompt_lookup_min": 9}, "prompt_lookup_min", "prompt_lookup_max"),
    ({"method": "ngram", "prompt_lookup_max": 0}, "prompt_lookup_max", "at least 1"),
    ({"method": "ngram", "model": "d"}, "model", "Did you mean"),
    ({"method": "mtp", "tokens": 3}, "tokens", "num_speculative_tokens"),
    ({"method": "suffix", "suffix_decoding_min_token_prob": 2}, "suffix_decoding_min_token_prob", "at most 1"),
    ({"method": "eagle3", "model": "e", "draft_sample_method": "x"}, "draft_sample_method", "greedy"),
    ({"method": "ngram", "rejection_sample_method": "synthetic"}, "rejection_sample_method", "synthetic"),
    ({"method": "ngram", "synthetic_acceptance_length": 3}, "rejection_sample_method", "synthetic"),
    ({"method": "ngram", "synthetic_acceptance_rates": [2]}, "synthetic_acceptance_rates", "at most 1"),
    ({"method": "ngram", "num_speculative_tokens_per_batch_size": [[1, 2]]}, "per_batch_size", "missing"),
]


@pytest.mark.parametrize(("knob", "value", "accepted"), KNOBS)
def test_knob(knob: str, value: Any, accepted: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(EngineSettings, {"target": "t", "knobs": {knob: value}}, where="A")
    assert caught.value.params["key"] == f"knobs.{knob}"
    sentence_of(caught.value, "A", knob, "true" if value is True else str(value)[:20])
    assert accepted in say_message(caught.value)


@pytest.mark.parametrize("knob", ["kv_cache_dtype", "quantization", "load_format", "attention_backend"])
def test_a_nul_reaches_no_command(knob: str) -> None:
    for values in ({"knobs": {knob: "a\0b"}}, {"extra_flags": ["--revision=a\0b"]}):
        with pytest.raises(InvalidInput) as caught:
            validate(EngineSettings, {"target": "t", **values}, where="A")
        assert "control characters" in say_message(caught.value)


@pytest.mark.parametrize(("speculation", "field", "accepted"), SPECULATION)
def test_speculation(speculation: dict[str, Any], field: str, accepted: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(EngineSettings, {"target": "t", "speculation": speculation}, where="A")
    assert field in str(caught.value.params["key"])
    sentence_of(caught.value, "A", field)
    assert accepted in say_message(caught.value)


@pytest.mark.parametrize(
    ("model", "values", "field", "accepted"),
    [
        (EngineSettings, {}, "target", "missing"),
        (EngineSettings, {"target": ""}, "target", "not be empty"),
        (EngineSettings, {"target": None}, "target", "missing"),
        (EngineSettings, {"target": "/a/" + "x" * 256}, "target", "255 bytes"),
        (EngineSettings, {"target": "a/" + "\u6c49" * 86}, "target", "255 bytes"),
        (EngineSettings, {"target": "t", "runtime": "x" * 201}, "runtime", "200"),
        (EngineSettings, {"target": "t", "knobs": {"seed": 1 << 20_000}}, "knobs.seed", "at most"),
        (Workload, {"prompt": "x", "sampling": {"max_tokens": 2**63}}, "max_tokens", "at most"),
        (Workload, {"prompt": "x", "sampling": {"top_k": 2**63}}, "top_k", "at most"),
        (AttachedEndpoint, {"base_url": "http://h", "model": "x" * 256}, "model", "255 bytes"),
        (EngineSettings, {"target": "t", "knobs": 3}, "knobs", "a table"),
        (EngineSettings, {"target": "t", "extra_flags": "--x"}, "extra_flags", "a list"),
        (EngineSettings, {"target": "t", "max_num_seqs": 3}, "max_num_seqs", "knobs"),
        (Workload, {"prompt": ""}, "prompt", "not be empty"),
        (Workload, {"prompt": "  "}, "prompt", "prompt is empty"),
        (Workload, {"prompt": "x", "objective": "speed"}, "objective", "goodput"),
        (Workload, {"prompt": "x", "sampling": {"temperature": 3}}, "temperature", "at most 2"),
        (Workload, {"prompt": "x", "sampling": {"top_p": "0,9"}}, "top_p", "a number"),
        (Workload, {"prompt": "x", "sampling": {"seed": 2**63}}, "seed", "below"),
        (Workload, {"prompt": "x", "turns": [{"role": "tool", "content": "x"}]}, "turns.0.role", "assistant"),
        (Measurement, {"max_rounds": 3}, "max_rounds", "at least 6"),
        (Measurement, {"budget_s": 0}, "budget_s", "above 0"),
        (Measurement, {"profile": {"kind": "burst"}}, "profile.kind", "waves"),
        (Measurement, {"profile": {"kind": "rate", "requests": 4}}, "requests_per_s", "missing"),
        (Measurement, {"profile": {"kind": "concurrency"}}, "requests", "duration_s"),
        (Measurement, {"profile": {"kind": "ramp", "last": 4, "duration_s": 3}}, "requests", "ramp"),
        (Measurement, {"profile": {"kind": "waves", "concurency": 4, "requests": 3}}, "concurrency", "missing"),
        (Measurement, {"prompts": {"input_tokens": 0}}, "prompts.input_tokens", "at least 1"),
        (Measurement, {"prompts": {"input_tokens": 9, "counts": 3}}, "prompts.counts", "count"),
        (AttachedEndpoint, {"base_url": "http://h"}, "model", "missing"),
        (AttachedEndpoint, {"base_url": "http://h", "model": "m", "api": "embed"}, "api", "completions"),
    ],
)
def test_values(model: Any, values: dict[str, Any], field: str, accepted: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(model, values, where="A")
    sentence_of(caught.value, "A", field.rpartition(".")[2])
    assert accepted in say_message(caught.value)


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"extra_flags": "--x 'y"}, "extra_flags"),
        ({"more": "{", "method": "ngram"}, "speculation.more"),
        ({"more": "[1]", "method": "ngram"}, "speculation.more"),
        ({"k": None, "method": "ngram"}, "speculation.num_speculative_tokens"),
        ({"draft": "", "method": "draft_model"}, "speculation.model"),
        ({"target": "  "}, "target"),
        ({"knobs": '{"max_num_seqs": "many"}'}, "knobs.max_num_seqs"),
        ({"attached": True, "base_url": "ftp://h", "model": "m"}, "base_url"),
        ({"attached": True, "base_url": "http://h", "model": ""}, "model"),
    ],
)
def test_form(changed: dict[str, Any], key: str) -> None:
    values = values_of(presets.load(presets.EMBEDDED).sides[0]) | {"label": "mine"} | changed
    with pytest.raises(InvalidInput) as caught:
        side_of(values, "A")
    # By these the page finds the field.
    assert caught.value.params.get("side", caught.value.params.get("where")) == "mine"
    assert caught.value.params["key"] == key
    sentence_of(caught.value)


PRESETS: list[tuple[str, str, str]] = [
    ("gpu = false", "gpu = 3", "gpu"),
    ("gpu = false", "gpu = ", "TOML"),
    ("gpu = false", "gpu = false\ngpuu = 1", "gpuu"),
    ('target = "t"', "", "target"),
    ('target = "t"', "target = 5", "target"),
    ('target = "t"', 'target = "t"\ntraget = "t"', "traget"),
    ("max_num_seqs = 8", "max_num_seqs = 0", "max_num_seqs"),
    ("max_num_seqs = 8", "max_num_seq = 8", "max_num_seqs"),
    ("max_num_seqs = 8", "max_num_batched_tokens = 8\nmax_prefill_tokens = 9", "max_prefill_tokens"),
    ('dtype = "float32"', 'dtype = "float8"', "dtype"),
    ('label = "B"', "", "label"),
    ('label = "B"', 'label = ""', "label"),
    ('label = "B"', 'label = "B"\nbase_url = "h h"\nmodel = "m"', "knobs"),
    (
        'max_num_seqs = 16\n[sides.speculation]\nmethod = "ngram"\nnum_speculative_tokens = 4',
        "seed = 1\n[[sides]]\nlabel = 'C'\nbase_url = 'h h'\nmodel = 'm'",
        "h h",
    ),
    ('method = "ngram"', 'method = "ngrm"', "method"),
    ('method = "ngram"', "", "method"),
    ("num_speculative_tokens = 4", "num_speculative_tokens = 400", "num_speculative_tokens"),
    ("num_speculative_tokens = 4", "speculative_tokens = 4", "speculative_tokens"),
    ('prompt = "p"', 'prompt = " "', "prompt"),
    ("max_tokens = 9", "max_tokens = -9", "max_tokens"),
    ("[common]", "[[common]]", "common"),
    ('title = {en = "t", ', "title = {en = 1, ", "title"),
    ("[workload]", '[measurement]\nprofile = {kind = "rate", speed = 1, requests = 2}\n[workload]', "profile"),
    ("[workload]", "[measurement]\nmax_rounds = 1\n[workload]", "max_rounds"),
    ("[workload]", 'x = "\ud800"\n[workload]', "TOML"),
    ("max_tokens = 9", f"max_tokens = {'9' * 5000}", "TOML"),
    ("[workload]", f"x = {'[' * 5000}\n[workload]", "TOML"),
]


@pytest.mark.parametrize(("line", "wrong", "named"), PRESETS)
def test_preset(line: str, wrong: str, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert line in GOOD
    path = tmp_path / "mine.toml"
    path.write_bytes(GOOD.replace(line, wrong).encode("utf-8", "surrogatepass"))
    with pytest.raises(InvalidInput) as caught:
        presets.load(str(path))
    if caught.value.message_id != "preset.not_toml":
        # That one repeats what Python's own reader says.
        sentence_of(caught.value)
    assert named in say_message(caught.value)
    assert main(["compare", str(path), "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{say_message(caught.value)}\n"


FILES: list[tuple[str, bytes, str]] = [
    ("p.docx", b"x", ".jsonl"),
    ("p", b"x", ".jsonl"),
    ("p.txt", b"", "p.txt"),
    ("p.txt", b"\n \n", "p.txt"),
    ("p.txt", b"good\n\xff\xfe", "line 2"),
    ("p.jsonl", b"{", "line 1"),
    ("p.jsonl", b'{"prompt": "x"}\nnope', "line 2"),
    ("p.jsonl", b'{"answer": "x"}', "line 1"),
    ("p.jsonl", b'{"prompt": " "}', "line 1"),
    ("p.jsonl", b'{"prompt": "x", "max_tokens": 0}', "max_tokens"),
    ("p.jsonl", b'{"prompt": "x", "max_tokens": "many"}', "many"),
    ("p.jsonl", b'{"messages": []}', "user"),
    ("p.jsonl", b'{"messages": [{"role": "robot", "content": "x"}]}', "user"),
    ("p.jsonl", b'{"messages": [{"role": "assistant", "content": "x"}]}', "user"),
    ("p.json", b'{"answer": "x"}', "entry 1"),
    ("p.json", b'[{"prompt": "x"}, 3]', "entry 2"),
    ("p.csv", b"title\nx\n", "title"),
    ("p.csv", b"", "prompt"),
    ("p.csv", b'prompt\n"x', "line 2"),
    ("p.csv", b"prompt,max_tokens\nx,-1\n", "-1"),
]


@pytest.mark.parametrize(("name", "content", "named"), FILES)
def test_prompts_file(name: str, content: bytes, named: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        prompts.load(str(path))
    assert name in say_message(caught.value)
    assert named in say_message(caught.value)
    for locale in LOCALES:
        assert "\n" not in say_message(caught.value, locale)


PASTED: list[tuple[str, str]] = [
    ("", "vllm serve"),
    ("   \n", "vllm serve"),
    ("x" * 100_001, "100,000"),
    ("ls -la", "ls -la"),
    ("vllm bench serve", "vllm bench"),
    ("python server.py", "python server.py"),
    ("python -m http.server", "python -m"),
    ("docker run ubuntu", "vllm-openai"),
    ("vllm serve", "--model"),
    ("vllm serve --max-num-seqs 4", "--model"),
    ("vllm serve $MODEL", "$MODEL"),
    ("vllm serve ${MODEL}", "${MODEL}"),
    ('vllm serve "$MODEL"', "$MODEL"),
    ("vllm serve `cat model`", "`"),
    ("vllm serve $(cat model)", "$("),
    ("vllm serve 'm", "'"),
    ('vllm serve "m', '"'),
    ("vllm serve m --enable-lora stray", "stray"),
    ("vllm serve m --max-num-seqs abc", "abc"),
    ("vllm serve m --max-num-seqs", "max_num_seqs"),
    ("vllm serve m --gpu-memory-utilization 2", "at most 1"),
    ("vllm serve m --dtype int4", "bfloat16"),
    ("vllm serve m --speculative-config {", "{"),
    ('vllm serve m --speculative-config {"method": "ngram"}', "single quotes"),
    ("vllm serve m --speculative-config '[1]'", "[1]"),
    ("""vllm serve m --speculative-config '{"method": "ngram", "promt_lookup_max": 1}'""", "prompt_lookup_max"),
    ("vllm serve m --max-prefill-tokens 4 --max-num-batched-tokens 5", "max_prefill_tokens"),
    ("LLM(", "line 1"),
    ("LLM()", "--model"),
    ("LLM(model=name)", "name"),
    ("LLM('m', **options)", "options"),
    ("LLM('m', 'n')", "'n'"),
    ("LLM('m')\nLLM('n')", "2"),
    ("LLM(model=open('/etc/passwd').read())", "open("),
    ("LLM('m', tensor_parallel_size=0)", "at least 1"),
    (f"LLM(model={'+'.join('a' * 1200)})", "a+a+a"),
    (f"LLM('m', {'+'.join('a' * 1200)})", "a+a+a"),
    (f"LLM(model=m)\na{'.a' * 1500}()", "model"),
    (f"LLM(model=m)\nf{'()' * 1500}", "model"),
    (f"LLM({'[' * 3000}", "line 1"),
    ("LLM('m', speculative_config={1: 2})", "{1: 2}"),
    ("LLM('m', speculative_config=b'x')", "b'x'"),
    ("LLM('m', hf_overrides={'a': {1, 2}})", "{1, 2}"),
    ("LLM('m', hf_overrides=b'x')", "b'x'"),
    ("LLM('m', served='\\ud800')", "extra_flags"),
    (f"LLM('m', max_num_seqs=0x{'f' * 5000})", "max_num_seqs"),
    ("LLM('m', trust_remote_code='maybe')", "true or false"),
    ("vllm serve m --trust-remote-code=maybe", "maybe"),
    (f"vllm serve m --max-model-len {'9' * 400}k", "max_model_len"),
    (f"vllm serve m --max-model-len {'9' * 300}k", "at most 9223372036854775807"),
]


@pytest.mark.parametrize(("text", "named"), PASTED)
def test_pasted_text(text: str, named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        paste.read(text)
    said = say_message(caught.value)
    assert named in said
    for locale in LOCALES:
        assert "\n" not in say_message(caught.value, locale)
    assert not FOREIGN.search(say_message(caught.value, "zh-CN"))


LINES: list[tuple[list[str], str]] = [
    ([], "VERB"),
    (["cmpare"], "cmpare"),
    (["compare"], "preset"),
    (["compare", "nope"], "nope"),
    (["compare", "smollm2-ngrm"], "smollm2-ngram"),
    (["compare", "/no/such.toml"], "/no/such.toml"),
    (["compare", presets.EMBEDDED, "--mode", "fast"], "measured"),
    (["compare", presets.EMBEDDED, "--prompt", " "], "prompt"),
    (["compare", presets.EMBEDDED, "--prompts", "chat"], "--mode measured"),
    (["compare", presets.EMBEDDED, "--prompt", "x", "--prompts", "y"], "--prompt"),
    (["compare", presets.EMBEDDED, "--mode", "measured", "--prompts", "caht"], "chat"),
    (["compare", presets.EMBEDDED, "--mode", "measured", "--prompts", "/no/file.txt"], "file.txt"),
    (["compare", presets.EMBEDDED, "--fast"], "--fast"),
    (["load"], "--base-url"),
    (["load", "--base-url", "http://h"], "--model"),
    (["load", "--base-url", "ftp://h", "--model", "m"], "ftp://h"),
    (["load", "--base-url", "notaurl", "--model", "m"], "notaurl"),
    (["load", "--base-url", "http://h", "--model", "m", "--api", "embed"], "completions"),
    (["load", "--base-url", "http://h", "--model", "m", "--concurrency", "0"], "'0'"),
    (["load", "--base-url", "http://h", "--model", "m", "--concurrency", "9999"], "at most 4096"),
    (["load", "--base-url", "http://h", "--model", "m", "--requests", "-1"], "'-1'"),
    (["load", "--base-url", "http://h", "--model", "m", "--output-tokens", "x"], "'x'"),
    (["load", "--base-url", "http://h", "--model", "m", "--prompt", " "], "prompt"),
    (["load", "--base-url", "http://h", "--model", "m", "--prompts", "caht"], "chat"),
    (["history"], "ACTION"),
    (["history", "shw", "1"], "shw"),
    (["history", "export", "1", "--format", "xls"], "csv"),
    (["doctor", "--fix"], "--fix"),
]


@pytest.mark.parametrize(("argv", "named"), LINES)
def test_command_line(argv: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(argv)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Traceback" not in printed.err
    assert named in printed.err.strip().rsplit("\n", 1)[-1]


URLS = ["", " ", "http://", "ftp://h", "file:///etc/passwd", "http://h:0", "http://h:99999", "http://h:x", "h h"]
URLS += ["http://me:secret@h", "http://h?key=secret", "http://h#x", "http://h/../x", "http://h//x", "http://[::1"]
URLS += ["http://[zz]", "http://h\nX: y", "http://ho$t", "javascript:alert(1)", "http://h\\x", "http://é"]


@pytest.mark.parametrize("text", URLS)
def test_address(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|host|path") as refusal:
        BaseUrl.parse(text)
    assert "secret" not in str(refusal.value)
    with pytest.raises(InvalidInput) as caught:
        validate(AttachedEndpoint, {"base_url": text, "model": "m"}, where="A")
    assert caught.value.params["key"] == "base_url"
    for locale in LOCALES:
        said = say_message(caught.value, locale)
        assert "secret" not in said
        assert "\n" not in said
        assert "http://" in said


VARIABLES: list[tuple[str, str]] = [
    ("PLAYGROUND_PROT", "7860"),
    ("PLAYGROUND_PORT", "http"),
    ("PLAYGROUND_PORT", "0"),
    ("PLAYGROUND_PORT", "70000"),
    ("PLAYGROUND_PORT", "7860.5"),
    ("PLAYGROUND_AUTH", "secret"),
    ("PLAYGROUND_RUNTIMES", "/usr/bin/python"),
    ("PLAYGROUND_ENDPOINTS", "ftp://h"),
    ("PLAYGROUND_ENDPOINTS", "http://h,,"),
    ("PLAYGROUND_ENDPOINT_KEYS", "secret"),
    ("PLAYGROUND_ENDPOINT_KEYS", "http://h="),
    ("PLAYGROUND_TRUST_REMOTE_CODE", "yes"),
    ("PLAYGROUND_EXTRA_FLAGS", "true"),
    ("PLAYGROUND_CPU_KV_GIB", "0"),
    ("PLAYGROUND_CPU_KV_GIB", "1.5"),
    ("PLAYGROUND_CPU_KV_GIB", "4GiB"),
    ("PLAYGROUND_IDLE_STOP_S", "-1"),
    ("PLAYGROUND_IDLE_STOP_S", "nan"),
    ("PLAYGROUND_START_TIMEOUT_S", "soon"),
    ("PLAYGROUND_REQUEST_TIMEOUT_S", "0"),
]


@pytest.mark.parametrize(("name", "value"), VARIABLES)
def test_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    for argv in (["doctor"], ["history", "list"], ["compare", presets.EMBEDDED]):
        assert main(argv) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert name in said
        assert "secret" not in said
    with pytest.raises(InvalidInput) as caught:
        Config.from_environment()
    assert not FOREIGN.search(say_message(caught.value, "zh-CN"))


def test_there_are_many() -> None:
    tables: list[list[Any]] = [KNOBS, SPECULATION, PRESETS, FILES, PASTED, LINES, URLS, VARIABLES]
    assert sum(map(len, tables)) >= 150


def test_all_that_is_wrong_is_told_at_once() -> None:
    values = {"target": "m", "knobs": {"max_num_seqs": 0, "block_size": -1, "seed": 3, "nothing": 1}}
    with pytest.raises(InvalidInput) as caught:
        validate(EngineSettings, values, where="A")
    told = {str(problem.params["key"]) for problem in caught.value.all}
    assert told == {"knobs.max_num_seqs", "knobs.block_size", "knobs.nothing"}
    assert len(caught.value.all) == 3
