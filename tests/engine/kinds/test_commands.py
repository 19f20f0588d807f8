"""The commands of engines other than vLLM, and what is refused before their start."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.spec.settings import EngineSettings
from playground.engine import runtime, telemetry
from playground.engine.kinds.kind import Launch
from playground.engine.kinds.program import Program
from playground.engine.kinds.table import KINDS, kinds

# What each prints in its own page of counters, from its documentation.
PAGES = {
    "llama-cpp": "# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 3\n"
    "# TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 1\n"
    "# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total 70\n"
    "# TYPE llamacpp:spec_decode_num_drafts_total counter\nllamacpp:spec_decode_num_drafts_total 14\n"
    "# TYPE llamacpp:spec_decode_num_accepted_tokens_per_pos_total counter\n"
    'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 6\n'
    'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 5\n',
    "sglang": '# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model_name="m"} 3.0\n'
    '# TYPE sglang:num_queue_reqs gauge\nsglang:num_queue_reqs{model_name="m"} 1.0\n'
    '# TYPE sglang:generation_tokens_total counter\nsglang:generation_tokens_total{model_name="m"} 70.0\n',
    "tgi": "# TYPE tgi_batch_current_size gauge\ntgi_batch_current_size 3\n"
    "# TYPE tgi_queue_size gauge\ntgi_queue_size 1\n",
}
LISTENING = "--host=127.0.0.1 --port=8123"
ABSENT = {name for name, kind in KINDS.items() if kind.find() is None}


def settings(name: str, **more: Any) -> EngineSettings:
    return EngineSettings.model_validate({"runtime": name, "target": "owner/model", **more})


def launch(name: str, device: str = "cuda", **more: Any) -> Launch:
    made = settings(name, **more)
    program = Program(("program",), "1.0", device)
    return Launch(made, program, "/models/target", made.draft and "/models/draft", 8123, cores=4, kv_tokens=6_400)


def draft(k: int = 3) -> dict[str, Any]:
    return {"method": "draft_model", "model": "owner/draft", "num_speculative_tokens": k}


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (launch("transformers", "cpu"), "/models/target --device=cpu AT"),
        (
            launch("transformers", knobs={"dtype": "float32"}, trust_remote_code=True),
            "/models/target --device=cuda AT --dtype=float32 --trust-remote-code",
        ),
        (
            launch("transformers-batching", "cpu", knobs={"max_num_batched_tokens": 256}),
            "/models/target --device=cpu AT --continuous-batching --cb-num-blocks=200"
            " --cb-block-size=32 --cb-max-batch-tokens=256",
        ),
        (
            launch("transformers-batching", "cpu", knobs={"block_size": 64}),
            "/models/target --device=cpu AT --continuous-batching --cb-num-blocks=100 --cb-block-size=64",
        ),
        (
            launch(
                "llama-cpp",
                "cpu",
                knobs={"max_num_seqs": 2, "max_model_len": 1024, "enable_prefix_caching": False},
            ),
            "--model=/models/target AT --parallel=2 --ctx-size=2048 --threads=4 --metrics --no-cache-prompt",
        ),
        (
            launch("llama-cpp", speculation=draft(7)),
            "--model=/models/target AT --parallel=4 --metrics --model-draft=/models/draft --draft-max=7",
        ),
        (
            launch("sglang", knobs={"max_num_seqs": 48, "enforce_eager": True, "enable_prefix_caching": True}),
            "--model-path=/models/target --served-model-name=playground AT --enable-metrics"
            " --max-running-requests=48 --disable-cuda-graph",
        ),
        (
            launch("sglang", speculation=draft(5)),
            "--model-path=/models/target --served-model-name=playground AT --enable-metrics"
            " --speculative-algorithm=STANDALONE --speculative-num-draft-tokens=6"
            " --speculative-draft-model-path=/models/draft --speculative-num-steps=5 --speculative-eagle-topk=1",
        ),
        (
            launch("sglang", speculation={"method": "ngram", "num_speculative_tokens": 4}),
            "--model-path=/models/target --served-model-name=playground AT --enable-metrics"
            " --speculative-algorithm=NGRAM --speculative-num-draft-tokens=5",
        ),
        (
            launch("tensorrt-llm", knobs={"max_num_seqs": 64, "tensor_parallel_size": 2}),
            "/models/target AT --backend=pytorch --max_batch_size=64 --tp_size=2",
        ),
        (
            launch("tgi", speculation={"method": "ngram", "num_speculative_tokens": 3}),
            "--model-id=/models/target --hostname=127.0.0.1 --port=8123 --speculate=3",
        ),
    ],
)
def test_the_command(made: Launch, words: str) -> None:
    kind = KINDS[made.settings.runtime]
    kind.check(made.settings, "A")
    assert kind.argv(made) == ("program", *shlex.split(words.replace("AT", LISTENING)))


@pytest.mark.parametrize(
    ("name", "more", "key"),
    [
        ("transformers", {"knobs": {"max_num_seqs": 4}}, "knobs.max_num_seqs"),
        ("transformers", {"knobs": {"use_v2_model_runner": True}}, "knobs.use_v2_model_runner"),
        ("transformers", {"speculation": draft()}, "speculation.method"),
        ("llama-cpp", {"extra_flags": ["--host", "0.0.0.0"]}, "extra_flags"),
        ("llama-cpp", {"trust_remote_code": True}, "trust_remote_code"),
        ("tgi", {"speculation": draft()}, "speculation.method"),
    ],
)
def test_what_an_engine_does_not_have_is_refused(name: str, more: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        KINDS[name].check(settings(name, **more), "A")
    assert caught.value.params["key"] == key
    assert KINDS[name].title in str(caught.value)


@pytest.mark.parametrize("name", PAGES)
def test_counters_by_their_own_names(name: str) -> None:
    counters = telemetry.parse(PAGES[name], KINDS[name].counters)
    assert (counters.running, counters.waiting) == (3, 1)
    assert counters.generation_tokens == (70 if "generation_tokens" in KINDS[name].counters else None)
    drafted = (14, (6, 5)) if name == "llama-cpp" else (None, None)
    assert (counters.drafts, counters.accepted_per_position) == drafted


def test_every_knob_is_one_of_ours() -> None:
    fields = set(settings("x").knobs.model_dump())
    assert all(kind.knobs.keys() <= fields for kind in KINDS.values())


@pytest.mark.parametrize(
    "name", sorted(ABSENT) or [pytest.param("", marks=pytest.mark.skip("every engine is here"))]
)
def test_an_engine_that_is_not_on_the_host(name: str, config: Config) -> None:
    assert name not in runtime.names(config)
    for ask in (runtime.check_name, runtime.probe):
        with pytest.raises(PlaygroundError) as caught:
            ask(config, name)
        assert caught.value.message_id == "kind.absent"
        assert KINDS[name].brings in str(caught.value)


def test_an_engine_by_the_hosts_own_command(config: Config) -> None:
    commands = {
        "mine": "python3 -m server {model} --listen 127.0.0.1:{port}",
        "gone": "no-such-program {model} {port}",
    }
    own = Config.from_environment({"PLAYGROUND_ENGINES": ";".join(f"{n}={c}" for n, c in commands.items())})
    assert own.engines == commands
    assert "mine" in runtime.names(own)
    assert "gone" not in runtime.names(own)
    made = launch("mine")
    assert kinds(own)["mine"].argv(made) == (
        "program", "-m", "server", "/models/target", "--listen", "127.0.0.1:8123"
    )  # fmt: skip
    for bad in ("mine", "mine=", "mine=serve", "mine=serve {model}", "mine=serve 'open {model} {port}"):
        with pytest.raises(InvalidInput) as caught:
            Config.from_environment({"PLAYGROUND_ENGINES": bad})
        assert caught.value.message_id == "config.bad_value"
