"""Deploy snippets: the shell, vLLM's own parser, Python, and the schemas of Kubernetes and Compose take them."""

from __future__ import annotations

import ast
import csv
import json
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from compose_pydantic import ComposeSpecification
from support.paths import ROOT

from playground import presets
from playground.config import Config
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.settings import CARDS, AttachedEndpoint, EngineSettings, Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS
from playground.domain.spec.workload import Workload
from playground.domain.vllm_cli import option_table, paste
from playground.domain.vllm_cli.options import ALIASES
from playground.engine.kinds.table import KINDS
from playground.i18n import LOCALES, Locale
from playground.models import folders
from playground.report import deploy
from playground.ui.shared import view

KNOBS: dict[str, Any] = {
    "max_num_seqs": 16,
    "max_num_batched_tokens": 4096,
    "max_model_len": 2048,
    "enable_chunked_prefill": False,
    "long_prefill_token_threshold": 512,
    "scheduling_policy": "priority",
    "async_scheduling": False,
    "gpu_memory_utilization": 0.85,
    "kv_cache_memory_bytes": 2**31,
    "kv_cache_dtype": "fp8",
    "kv_offloading_size": 2.5,
    "block_size": 16,
    "enable_prefix_caching": False,
    "dtype": "bfloat16",
    "quantization": "fp8",
    "load_format": "dummy",
    "seed": 7,
    "enforce_eager": True,
    "attention_backend": "FLASH_ATTN",
    "use_v2_model_runner": False,
    "tensor_parallel_size": 2,
    "pipeline_parallel_size": 2,
    "data_parallel_size": 2,
    "distributed_executor_backend": "mp",
}
# What quoting has to survive, in every place where somebody may type.
ODD = '/models/it\'s $HOME `x` $(y) "z" 汉'
METHODS: dict[str, dict[str, Any]] = {
    "off": {},
    "draft_model": {"model": "owner/draft", "draft_tensor_parallel_size": 1, "max_model_len": 512},
    "ngram": {"num_speculative_tokens": 3, "prompt_lookup_max": 4},
    "ngram_gpu": {},
    "suffix": {"suffix_decoding_min_token_prob": 0.1},
    "eagle": {"model": "owner/head"},
    "eagle3": {"model": "owner/head", "draft_sample_method": "greedy", "parallel_drafting": True},
    "dflash": {"model": "owner/block"},
    "dspark": {"model": "owner/block", "num_speculative_tokens_per_batch_size": [[1, 8, 3], [9, 64, 0]]},
    "mtp": {"num_speculative_tokens": 1},
}


def settings(**given: Any) -> EngineSettings:
    return EngineSettings.model_validate({"target": "owner/name", **given})


@cache
def cases() -> dict[str, EngineSettings]:
    sides = {
        f"{name} {side.label}": side.engine
        for name in presets.names()
        for side in presets.load(name).sides
        if isinstance(side.engine, EngineSettings) and side.engine.runtime not in KINDS
    }
    methods = {method: settings(speculation={"method": method, **fields}) for method, fields in METHODS.items()}
    whole = settings(knobs=KNOBS, trust_remote_code=True, extra_flags=["--chat-template", "a b\n$c"])
    return {name: _elsewhere(case) for name, case in {**sides, **methods}.items()} | {
        "everything": whole,
        "odd": settings(target=ODD),
    }


def _elsewhere(case: EngineSettings) -> EngineSettings:
    """The settings with a draft that comes with the playground by its folder: no other machine knows its name."""
    if case.draft not in {folder.name for folder in folders.DRAFTS.iterdir()}:
        return case
    speculation = case.speculation.model_copy(update={"model": folders.portable(Config(), str(case.draft))})
    return case.model_copy(update={"speculation": speculation})


@cache
def typed_options() -> dict[str, dict[str, Any]]:
    """Command lines that people type, of tests/cases/paste."""
    path = ROOT / "tests" / "cases" / "paste" / "options.toml"
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["case"]
    return {case["name"]: case for case in listed}


def snippets(case: EngineSettings, version: str | None = "0.32.0", device: str = "cuda") -> dict[str, str]:
    return dict(deploy.snippets(Config(), case, version, device))


def shell_words(snippet: str) -> list[str]:
    """What a shell makes of it: the words that the command would get."""
    script = f"vllm() {{ printf '%s\\0' vllm \"$@\"; }}; docker() {{ printf '%s\\0' docker \"$@\"; }}\n{snippet}"
    done = subprocess.run(["bash", "-euc", script], capture_output=True, check=True, timeout=30)
    return done.stdout.decode().split("\0")[:-1]


def keywords(snippet: str) -> dict[str, Any]:
    """Of LLM(...), as Python reads them."""
    calls = [node for node in ast.walk(ast.parse(snippet)) if isinstance(node, ast.Call)]
    made = next(call for call in calls if ast.unparse(call.func) == "LLM")
    return {str(one.arg): ast.literal_eval(one.value) for one in made.keywords}


def test_the_cases_set_everything() -> None:
    # Which cards an engine takes is of this machine: it is not deployed.
    assert KNOBS.keys() == Knobs.model_fields.keys() - {CARDS}
    assert snippets(settings(knobs={CARDS: "0,1", "tensor_parallel_size": 2})) == snippets(
        settings(knobs={"tensor_parallel_size": 2})
    )
    assert METHODS.keys() == SPECULATION_METHODS.keys()


ASK_VLLM = """
import contextlib, dataclasses, inspect, json, sys
with contextlib.redirect_stdout(sys.stderr):
    from vllm import LLM, EngineArgs
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    parser = FlexibleArgumentParser()
    ServeSubcommand().subparser_init(parser.add_subparsers())
    def parse(words):
        try:
            return vars(parser.parse_args(words))
        except (SystemExit, ValueError):
            return None
    parsed = [parse(words) for words in json.load(sys.stdin)]
    fields = {field.name for field in dataclasses.fields(EngineArgs)} | set(inspect.signature(LLM).parameters)
    actions = parser._subparsers._group_actions[0].choices["serve"]._actions
    options = [(action.option_strings, action.nargs) for action in actions if action.option_strings]
print(json.dumps({"parsed": parsed, "fields": sorted(fields), "options": options}, default=str))
"""


@pytest.fixture(scope="module")
def vllm() -> dict[str, Any]:
    """What vLLM's own parser made of each case's command, and what LLM() takes. Importing vLLM takes seconds."""
    commands = [shell_words(snippets(case)["serve"])[1:] for case in cases().values()]
    commands += [shlex.split(case["text"].replace("\\\n", " "))[1:] for case in typed_options().values()]
    asked = [sys.executable, "-c", ASK_VLLM]
    done = subprocess.run(asked, input=json.dumps(commands), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return {
        **answer,
        "parsed": dict(zip([*cases(), *typed_options()], answer["parsed"], strict=True)),
        "fields": set(answer["fields"]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", typed_options())
def test_vllm_reads_options_alike(vllm: dict[str, Any], name: str) -> None:
    case, parsed = typed_options()[name], vllm["parsed"][name]
    if case.get("vllm") == "refuses":
        assert parsed is None
    elif "target" in case:
        auto = {"auto": -1}
        assert parsed["model_tag"] == case["target"]
        knobs = {knob: auto.get(value, value) for knob, value in case.get("knobs", {}).items()}
        assert {knob: parsed[knob] for knob in knobs} == knobs
    elif case["refused"] in ("paste.stray", "paste.ambiguous", "paste.json_quotes", "settings.bad_value"):
        assert parsed is None


@pytest.mark.slow
def test_vllm_s_options_are_those_of_the_table(vllm: dict[str, Any]) -> None:
    """Which names there are, what follows each, and the short ones."""
    expected: dict[str, set[str]] = {"SWITCHES": set(), "FLAGS": set(), "LISTS": set(), "VALUES": set()}
    short: dict[str, str] = {}
    for flags, nargs in vllm["options"]:
        (name, *others) = [flag[2:] for flag in flags if flag.startswith("--")]
        kind = {0: "SWITCHES" if f"no-{name}" in others else "FLAGS", "+": "LISTS"}.get(nargs, "VALUES")
        expected[kind].add(name)
        assert all(other in (f"no-{name}", *ALIASES) for other in others)
        short |= {flag[1:]: name for flag in flags if not flag.startswith("--")}
    assert {kind: set(getattr(option_table, kind)) for kind in expected} == expected
    assert short == {**option_table.SHORT, "h": "help"}


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_vllm_takes_the_command(vllm: dict[str, Any], name: str) -> None:
    case, parsed = cases()[name], vllm["parsed"][name]
    assert parsed["model_tag"] == case.target
    assert {knob: parsed[knob] for knob in case.knobs.options} == case.knobs.options
    speculation = case.speculation.model_dump(exclude_none=True, mode="json") if case.speculates else None
    assert parsed["speculative_config"] == speculation
    assert parsed["trust_remote_code"] == case.trust_remote_code
    assert parsed["chat_template"] == (case.extra_flags[1] if case.extra_flags else None)
    assert parsed["uds"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_vllm_takes_the_script(vllm: dict[str, Any], name: str) -> None:
    case = cases()[name]
    script = snippets(case)["python"]
    given = keywords(script)
    assert given.keys() <= vllm["fields"]
    assert given.pop("model") == case.target
    assert given.pop("trust_remote_code", False) == case.trust_remote_code
    assert bool(given.pop("speculative_config", None)) == case.speculates
    left = case.knobs.options.items() - given.items()
    # One process runs one replica.
    assert dict(left) == ({"data_parallel_size": 2} if name == "everything" else {})
    comment = script.partition("outputs[0].text)\n")[2].splitlines()
    assert bool(comment) == bool(case.extra_flags)
    assert all(line.startswith("# ") for line in comment)


def test_the_script_starts_nothing_when_a_child_reads_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a process of multiprocessing does: on a CPU vLLM starts its own that way."""
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "")
    script = snippets(cases()["everything"])["python"].replace("from vllm import LLM", "LLM = None")
    exec(script, {"__name__": "__mp_main__"})
    with pytest.raises(TypeError):
        exec(script, {"__name__": "__main__"})


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_containers_run_the_same_command(name: str, device: str) -> None:
    case = cases()[name]
    made = snippets(case, device=device)
    words = shell_words(made["serve"])[2:]
    image = "vllm/vllm-openai-cpu:v0.32.0" if device == "cpu" else "vllm/vllm-openai:v0.32.0"

    docker = shell_words(made["docker"])
    assert docker[docker.index(image) + 1 :] == words

    compose = yaml.safe_load(made["compose"])
    ComposeSpecification.model_validate(compose)
    service = compose["services"]["vllm"]
    assert (service["image"], [word.replace("$$", "$") for word in service["command"]]) == (image, words)

    deployment = yaml.safe_load(made["kubernetes"])
    kubernetes_validate.validate(deployment, "1.30", strict=True)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (container["image"], [word.replace("$$", "$") for word in container["args"]]) == (image, words)

    gpus = 0 if device == "cpu" else case.gpus
    assert ("--gpus" in docker) == (gpus > 0)
    assert container.get("resources", {}).get("limits", {}).get("nvidia.com/gpu", 0) == gpus
    cards = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
    assert [card["count"] for card in cards] == ([gpus] if gpus else [])


def test_a_schema_refuses_what_is_wrong() -> None:
    """The checks themselves can fail."""
    deployment = yaml.safe_load(snippets(settings())["kubernetes"])
    deployment["spec"]["template"]["spec"]["containers"][0]["arg"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.30", strict=True)
    compose = yaml.safe_load(snippets(settings())["compose"])
    compose["services"]["vllm"]["comand"] = []
    with pytest.raises(ValueError, match="comand"):
        ComposeSpecification.model_validate(compose)


def test_no_word_turns_into_a_number() -> None:
    """Other readers of YAML than Python's take 1e-5 for a number, and `no` for false."""
    made = snippets(settings(extra_flags=["--x", "1e-5", "no", "012"]))
    for kind in ("kubernetes", "compose"):
        assert {'- "1e-5"', '- "no"', '- "012"'} <= {line.strip() for line in made[kind].splitlines()}


@pytest.mark.parametrize(
    ("version", "tag"),
    [
        ("0.32.0", "v0.32.0"),
        ("0.26.0+cpu", "v0.26.0"),
        ("0.33.1rc2", "v0.33.1rc2"),
        ("nightly", "latest"),
        (None, "latest"),
    ],
)
def test_the_image_is_the_version_that_ran(version: str | None, tag: str) -> None:
    made = snippets(settings(), version)
    for kind in ("docker", "kubernetes", "compose"):
        assert f"vllm/vllm-openai:{tag}" in made[kind].split()


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("owner/Name_1.5B", "vllm-name-1-5b"),
        ("/folder/", "vllm-folder"),
        ("汉字", "vllm"),
        ("o/" + "x" * 90, "vllm-" + "x" * 58),
        ("o/" + "x" * 57 + ".y", "vllm-" + "x" * 57),
    ],
)
def test_names_that_kubernetes_takes(target: str, name: str) -> None:
    assert yaml.safe_load(snippets(settings(target=target))["kubernetes"])["metadata"]["name"] == name


def test_local_models_are_mounted(tmp_path: Path) -> None:
    """By the same path inside and outside, since the command names it, whatever docker would read in it."""
    target, draft = tmp_path / 'a target: "x", $y', tmp_path / "draft"
    for folder in (target, draft):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
    config = Config(models=tmp_path)
    case = settings(target=target.name, speculation={"method": "draft_model", "model": str(draft)})
    made = deploy.snippets(config, case, None, "cuda")
    docker = shell_words(made["docker"])
    mounts = csv.reader([docker[at + 1] for at, word in enumerate(docker) if word == "--mount"], strict=True)
    mounted = [["type=bind", f"source={folder}", f"target={folder}", "readonly"] for folder in (target, draft)]
    assert list(mounts) == mounted
    compose = yaml.safe_load(made["compose"])
    ComposeSpecification.model_validate(compose)
    paths = [str(folder).replace("$", "$$") for folder in (target, draft)]
    mounted_by_compose = [{"type": "bind", "source": path, "target": path, "read_only": True} for path in paths]
    assert compose["services"]["vllm"]["volumes"] == mounted_by_compose
    pod = yaml.safe_load(made["kubernetes"])["spec"]["template"]["spec"]
    paths = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    assert paths == [str(target), str(draft)]
    assert [one["mountPath"] for one in pod["containers"][0]["volumeMounts"][1:]] == paths
    assert "HF_TOKEN" not in "".join(made.values())
    assert shell_words(made["serve"])[2] == str(target)


@pytest.mark.parametrize("name", [folders.EMBEDDED, "SmolLM2-135M-Instruct"])
def test_the_embedded_model_goes_by_its_hub_id(config: Config, name: str) -> None:
    assert shell_words(deploy.snippets(config, settings(target=name), None, None)["serve"])[2] == folders.EMBEDDED


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("mode", ["race", "measured"])
def test_the_page_offers_them_for_engines_alone(config: Config, locale: Locale, mode: Any) -> None:
    sides = [
        SideRecord("ran", settings(), runtime_version="0.32.0", device="cpu"),
        SideRecord("never started", settings()),
        SideRecord("theirs", AttachedEndpoint(base_url="http://x", model="m"), device=None),
    ]
    painter = view.painter(config, Run("run", "now", mode, Workload(prompt="x"), sides, status="done"), locale)
    ran, *others = json.loads(painter.paint(whole=True))["deploy"]
    assert [unescape(text) for text in re.findall("<code>(.*?)</code>", ran, re.DOTALL)] == list(
        snippets(settings(), device="cpu").values()
    )
    assert others == ["", ""]
    assert json.loads(painter.paint())["deploy"] is None


@pytest.mark.parametrize("name", cases())
def test_what_is_written_can_be_pasted_back(name: str) -> None:
    """In each of the five forms; of the options, only those that no host allows are left out."""
    case = cases()[name]
    expected = case.model_copy(update={"extra_flags": (), "target": folders.portable(Config(), case.target)})
    for kind, text in snippets(case).items():
        pasted = paste.read(text)
        assert (kind, pasted.settings) == (kind, expected)
        dropped = [left.what for left in pasted.left_out if left.what.startswith("--")]
        assert dropped == (["--chat-template"] if case.extra_flags else [])


@pytest.mark.parametrize(
    ("runtime", "typed"),
    [
        ("transformers", "transformers serve owner/name --device=cuda --host=127.0.0.1 --port=8000 --seed=7"),
        (
            "llama-cpp",
            "llama-server --model=owner/name --host=127.0.0.1 --port=8000 --parallel=4 --metrics --seed=7",
        ),
    ],
)
def test_another_engine_is_a_command_alone(runtime: str, typed: str) -> None:
    written = snippets(settings(runtime=runtime, knobs={"seed": 7}), None)
    assert written.keys() == {"serve"}
    assert shlex.split(written["serve"].replace("\\\n", "").replace("--default-seed", "--seed")) == shlex.split(
        typed
    )
