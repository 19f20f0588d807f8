"""Presets: every shipped one loads and keeps its promises; a mistake names file, key and nearest valid key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.preset_text import GOOD

from playground import presets
from playground.domain.errors import InvalidInput
from playground.domain.sweep.plan import points_of
from playground.domain.validation import nearest_of
from playground.i18n import LOCALES, say_message

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
    if line == "gpu = false":
        # The key itself is required: the unknown one is added to it.
        wrong = f"{line}\n{wrong}"
    error = refusal(write(GOOD.replace(line, wrong)))
    assert error.message_id == "settings.unknown_key"
    assert error.params["where"] == "mine.toml"
    key = str(error.params["key"]).rsplit(".", 1)[-1]
    assert key in wrong
    assert key not in GOOD.split()
    assert error.params["nearest"] == nearest


@pytest.mark.parametrize(
    ("line", "wrong", "message_id", "key"),
    [
        ("gpu = false", "gpu = 3", "settings.bad_value", "gpu"),
        ("gpu = false", "", "settings.missing_key", "gpu"),
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
    assert error.params.get("where", error.params.get("file")) == "mine.toml"
    if key is not None:
        assert str(error.params["key"]).endswith(key)


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
