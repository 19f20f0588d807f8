"""Presets: every shipped one loads and keeps its promises; a mistake names file, key and nearest valid key."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from support.preset_text import GOOD

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.sweep.plan import points_of
from playground.domain.validation import nearest_of
from playground.i18n import LOCALES, say_message
from playground.models import folders, inspection

REQUIRED = {
    "smollm2-ngram",
    "smollm2-draft",
    "qwen2.5-7b-draft-1.5b",
    "qwen2.5-7b-draft-0.5b-k8",
    "batching-16-vs-64",
    "deepseek-r1-distill-qwen-7b",
    "gpu-memory-085-vs-095",
    "kv-cache-fp8",
    "prefix-caching-on-vs-off",
}


Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


def refusal(path: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        presets.load(path)
    for locale in LOCALES:
        assert say_message(caught.value, locale)
    assert caught.value.exit_code == 2
    return caught.value


def test_the_promised_presets_are_shipped() -> None:
    assert set(presets.names()) >= REQUIRED
    # What the page opens with.
    assert presets.names()[0] == presets.EMBEDDED


@pytest.mark.parametrize("name", presets.names())
def test_shipped(name: str) -> None:
    preset = presets.load(name)
    assert preset.name == name
    assert 2 <= len(preset.sides) <= 4
    labels = [side.label for side in preset.sides]
    assert len(set(labels)) == len(labels)
    # Sides that do not differ compare nothing.
    assert len({(side.engine, side.profile) for side in preset.sides}) > 1
    if preset.sweep is not None:
        assert points_of(preset.sweep, preset.case)
    for text in (preset.title, preset.shows, preset.needs):
        assert text.in_locale("en") == text.en
        assert text.in_locale("zh-CN") == text.zh
        assert text.zh != text.en
        assert "\n" not in text.en + text.zh
    # A shipped preset runs on every host: none allows these by default.
    assert not any(side.engine.extra_flags or side.engine.trust_remote_code for side in preset.sides)


@pytest.mark.parametrize("name", [name for name in presets.names() if presets.load(name).equal_output])
def test_equal_output_is_pinned(name: str) -> None:
    preset = presets.load(name)
    sampling = preset.workload.sampling
    assert sampling.temperature == 0
    assert sampling.ignore_eos
    dtypes = {side.engine.knobs.dtype for side in preset.sides}
    assert len(dtypes) == 1
    assert dtypes & {"float32", "float16", "bfloat16"}
    assert len({side.engine.target for side in preset.sides}) == 1


def test_only_overrides_are_written(write: Write) -> None:
    a, b = presets.load(write(GOOD)).sides
    assert (a.engine.target, b.engine.target) == ("t", "t")
    assert a.engine.knobs.overrides() == {"max_num_seqs": 8, "dtype": "float32"}
    # One knob of a side leaves the other common ones.
    assert b.engine.knobs.overrides() == {"max_num_seqs": 16, "dtype": "float32"}
    assert (a.engine.speculates, b.engine.speculates) == (False, True)


def test_a_sides_speculation_replaces_the_common_one(write: Write) -> None:
    text = GOOD.replace(
        "[common.knobs]", '[common.speculation]\nmethod = "draft_model"\nmodel = "d"\n[common.knobs]'
    )
    a, b = presets.load(write(text)).sides
    assert a.engine.draft == "d"
    # A field of another method would be an error here.
    assert b.engine.speculation.method == "ngram"


@pytest.mark.parametrize(
    ("line", "wrong", "nearest"),
    [
        ("gpu = false", "gpuu = false", "gpu"),
        ('label = "B"', 'label = "B"\nrunt1me = "x"', "runtime"),
        ('target = "t"', 'target = "t"\ntrust_remote_cod = true', "trust_remote_code"),
        ("max_num_seqs = 16", "max_num_seq = 16", "max_num_seqs"),
        ("num_speculative_tokens", "num_speculative_token", "num_speculative_tokens"),
        ("[workload]", '[workload]\nsistem = "s"', "system"),
        ("max_tokens = 9", "max_token = 9", "max_tokens"),
        ('title = {en = "t", ', 'title = {en = "t", zh-TW = "t", ', "zh-CN"),
    ],
    ids=["top", "side", "common", "knobs", "speculation", "workload", "sampling", "title"],
)
def test_unknown_key(write: Write, line: str, wrong: str, nearest: str) -> None:
    error = refusal(write(GOOD.replace(line, wrong)))
    assert error.message_id == "settings.unknown_key"
    assert say_message(error).startswith("mine.toml, line ")
    key = str(error.params["key"]).rsplit(".", 1)[-1]
    assert key in wrong
    assert key not in GOOD.split()
    assert error.params["nearest"] == nearest


@pytest.mark.parametrize(
    ("line", "wrong", "message_id", "key"),
    [
        ("gpu = false", "gpu = 3", "settings.bad_value", "gpu"),
        ('target = "t"', "", "settings.missing_key", "target"),
        ('label = "B"', "", "settings.missing_key", "label"),
        ("max_tokens = 9", 'max_tokens = "many"', "settings.bad_value", "workload.sampling.max_tokens"),
        ('dtype = "float32"', 'dtype = "float64"', "settings.bad_value", "knobs.dtype"),
        ('method = "ngram"', 'method = "ngrm"', "settings.bad_value", "speculation.method"),
        ('prompt = "p"', 'prompt = " "', "settings.invalid", "workload.prompt"),
        ('[[sides]]\nlabel = "A"', "", "settings.bad_value", "sides"),
        ("[common]", "[[common]]", "preset.bad_shape", None),
        ("gpu = false", "gpu = ", "preset.not_toml", None),
    ],
)
def test_wrong_value(write: Write, line: str, wrong: str, message_id: str, key: str | None) -> None:
    error = refusal(write(GOOD.replace(line, wrong, 1)))
    assert error.message_id == message_id
    assert say_message(error).startswith("mine.toml")
    if key is not None:
        assert str(error.params["key"]).endswith(key)


SMALLEST = """
[[sides]]
label = "A"
target = "t"
[[sides]]
label = "B"
target = "t"
"""


def test_sides_are_enough(write: Write) -> None:
    preset = presets.load(write(SMALLEST))
    assert [preset.title.in_locale(locale) for locale in LOCALES] == ["mine", "mine"]
    assert (preset.gpu, preset.workload.prompt) == (False, presets.DEFAULT_PROMPT)
    sampled = presets.load(write(f"{SMALLEST}[workload.sampling]\nmax_tokens = 3"))
    assert (sampled.workload.prompt, sampled.workload.sampling.max_tokens) == (presets.DEFAULT_PROMPT, 3)


@pytest.mark.parametrize(
    ("title", "texts"),
    [
        ('"t"', ["t", "t"]),
        ('{en = "t"}', ["t", "t"]),
        ('{zh-CN = "题"}', ["题", "题"]),
        ('{en = "t", zh-CN = "题"}', ["t", "题"]),
    ],
)
def test_a_title_is_plain_text_or_by_language(write: Write, title: str, texts: list[str]) -> None:
    preset = presets.load(write(f"title = {title}\n{SMALLEST}"))
    assert [preset.title.in_locale(locale) for locale in LOCALES] == texts


@pytest.mark.parametrize("knob", ["gpu_memory_utilization = 0.8", 'quantization = "fp8"'])
def test_gpu_follows_from_the_settings(write: Write, knob: str) -> None:
    text = f"{SMALLEST}[sides.knobs]\n{knob}"
    assert presets.load(write(text)).gpu
    assert not presets.load(write(f"gpu = false\n{text}")).gpu


def test_all_faults_at_once_each_with_its_line(write: Write) -> None:
    wrong = (
        GOOD.replace("gpu = false", "gpu = 3")
        .replace('"float32"', '"float64"')
        .replace('label = "B"', 'lab = "B"')
    )
    wrong = wrong.replace('prompt = "p"', 'prompt = """\nmax_tokens = 1\n"""').replace(
        "max_tokens = 9", "max_token = 9"
    )
    error = refusal(write(wrong))
    assert error.params["count"] == 5
    lines = [int(line) for line in re.findall(r"mine.toml, line (\d+):", say_message(error))]
    # A label that is missing is missing from its side; `lab` is a key of that side.
    assert lines == [2, 10, 13, 14, 25]


def test_of_very_many_faults_the_first_are_listed(write: Write) -> None:
    error = refusal(write("".join(f"x{number} = 1\n" for number in range(5000)) + SMALLEST))
    assert error.params["count"] == 5000
    assert len(say_message(error).splitlines()) == presets.MOST_FAULTS + 2


def test_a_files_beginning_that_windows_writes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode())
    assert presets.load(str(path)).name == "mine"


KEYS = st.sampled_from(["sides", "common", "title", "workload", "knobs", "engine", "label", "x", "base_url"])
VALUES = st.sampled_from(["1", '"a"', "[]", "{}", "[[1]]", "{en = 1}", "1e400", '"""\n[a]\n"""', "true"])
LINES = (
    st.builds("{} = {}".format, KEYS, VALUES) | st.builds("[{}]".format, KEYS) | st.builds("[[{}]]".format, KEYS)
)


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
@hypothesis.given(st.lists(LINES | st.text(max_size=8), max_size=8))
def test_any_file_is_a_preset_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    with contextlib.suppress(InvalidInput):
        presets.load(str(path))


def test_five_sides_are_too_many(write: Write) -> None:
    more = "".join(f'[[sides]]\nlabel = "{name}"\n' for name in "CDE")
    assert refusal(write(GOOD.replace("[workload]", f"{more}[workload]"))).params["key"] == "sides"


def test_missing_file_names_the_nearest() -> None:
    error = refusal("smollm2-ngrm")
    assert error.message_id == "preset.missing"
    assert error.params["nearest"] == "smollm2-ngram"


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes('title = "é"'.encode("latin-1"))
    assert refusal(str(path)).message_id == "preset.not_toml"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("max_num_seq", "max_num_seqs"), ("qqq", "dtype, max_num_seqs, seed")],
)
def test_nearest_of(name: str, nearest: str) -> None:
    assert nearest_of(name, ["dtype", "max_num_seqs", "seed"]) == nearest


def test_the_draft_that_comes_along() -> None:
    """Small enough for a repository, and a draft that vLLM takes for its target."""
    config = Config()
    draft = presets.load("smollm2-draft").sides[1].engine.draft
    assert draft is not None
    folder = folders.local_folder(config, draft)
    assert folder is not None
    assert draft in folders.known(config)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 16_000_000
    model = inspection.read(config, draft, tokens=True, ask_hub=False).model
    assert model is not None
    assert 6e6 < model.parameters < 8e6
