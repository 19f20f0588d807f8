"""Question sets, people's own files (good and bad), synthetic prompts of exact length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from playground import prompts
from playground.domain.errors import InvalidInput
from playground.domain.limits import Limits
from playground.domain.spec.workload import ChatMessage, Prompt
from playground.i18n import LOCALES, say_message

SIZES = {
    "arithmetic": 12,
    "articles": 2,
    "chat": 12,
    "code": 8,
    "edit": 6,
    "mixed": 12,
    "short": 10,
    "short-among-long": 12,
    "short-among-medium": 12,
    "summarise": 6,
    "uneven": 8,
    "zh": 8,
}


def test_built_in_sets() -> None:
    assert {name: len(prompts.load(name)) for name in prompts.names()} == SIZES


@pytest.mark.parametrize("name", SIZES)
def test_no_prompt_comes_twice(name: str) -> None:
    found = [prompt.conversation for prompt in prompts.load(name)]
    assert len(set(found)) == len(found)


def test_sets_are_what_they_say() -> None:
    assert all(re.search("[\u4e00-\u9fff]", p.conversation[-1].content) for p in prompts.load("zh"))
    assert all("```" in p.conversation[-1].content for p in prompts.load("edit"))
    lengths = [p.max_tokens for p in prompts.load("mixed")]
    assert min(n for n in lengths if n) <= 8
    assert max(n for n in lengths if n) >= 1000
    assert [p.max_tokens for p in prompts.load("articles")] == [100, 1000]
    # Alone and among long ones the same short prompts are asked.
    short = set(prompts.load("short"))
    assert all(len(set(prompts.load(f"short-among-{others}")) - short) == 2 for others in ("long", "medium"))


def texts(file: Path) -> list[str]:
    return [prompt.conversation[-1].content for prompt in prompts.load(str(file))]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "one\n\n  two \r\n三\n", ["one", "two", "三"]),
        ("a.txt", "\ufeffone", ["one"]),
        ("a.txt", "one\u2028still one", ["one\u2028still one"]),
        ("A.TXT", "one", ["one"]),
        ("a.jsonl", '{"prompt": "one"}\n\n{"prompt": "two", "id": 7}\n', ["one", "two"]),
        ("a.jsonl", '{"messages": [{"role": "user", "content": "one"}]}', ["one"]),
        ("a.jsonl", '{"body": {"model": "m", "messages": [{"role": "user", "content": "one"}]}}', ["one"]),
        ("a.jsonl", '{"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}]}]}', ["one"]),
        ("a.jsonl", '{"conversations": [{"from": "human", "value": "one"}]}', ["one"]),
        (
            "a.csv",
            'id,prompt\n1,one\n2,"two, with a comma\nand a line"\n',
            ["one", "two, with a comma\nand a line"],
        ),
        ("a.csv", "\ufeffprompt\r\none\r\n", ["one"]),
        ("a.json", '[{"prompt": "one"}]', ["one"]),
        (
            "sharegpt.json",
            '[{"id": "x", "conversations": [{"from": "human", "value": "one"}, {"from": "gpt", "value": "no"},'
            ' {"from": "human", "value": "later"}]}, {"id": "y", "conversations": []},'
            ' {"conversations": [{"from": "gpt", "value": "alone"}]}]',
            ["one"],
        ),
    ],
)
def test_files(tmp_path: Path, name: str, content: str, expected: list[str]) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert texts(tmp_path / name) == expected


def test_whole_conversations(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"max_tokens": 5, "messages": [{"role": "developer", "content": "s"}, {"role": "user", "content": "u"},'
        ' {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"}]}'
    )
    expected = (
        ChatMessage(role="system", content="s"),
        ChatMessage(role="user", content="u"),
        ChatMessage(role="assistant", content="a"),
        ChatMessage(role="user", content="v"),
    )
    assert prompts.read(file) == (Prompt(conversation=expected, max_tokens=5),)


@pytest.mark.parametrize(
    ("name", "content", "limits"),
    [
        ("a.csv", "prompt,max_tokens\none,5\ntwo,\n", [5, None]),
        (
            "a.jsonl",
            '{"prompt": "one", "max_tokens": null}\n{"prompt": "b", "max_completion_tokens": 7}',
            [None, 7],
        ),
    ],
)
def test_limits(tmp_path: Path, name: str, content: str, limits: list[int | None]) -> None:
    (tmp_path / name).write_text(content)
    assert [prompt.max_tokens for prompt in prompts.read(tmp_path / name)] == limits


GOOD = '{"prompt": "one"}\n'


@pytest.mark.parametrize(
    ("name", "content", "message_id", "place"),
    [
        ("a.parquet", b"", "prompts.kind", ".jsonl"),
        ("a.txt", b"", "prompts.none", "a.txt"),
        ("a.txt", b" \n\n", "prompts.none", "a.txt"),
        ("a.txt", b"one\ntwo\n\xff\xfe", "prompts.not_utf8", "line 3"),
        ("a.jsonl", b"", "prompts.none", "a.jsonl"),
        ("a.jsonl", GOOD.encode() + b"{prompt", "prompts.not_json", "line 2"),
        ("a.jsonl", GOOD.encode() + b'"text"', "prompts.bad_entry", "line 2"),
        ("a.jsonl", b"[" * 100_000, "prompts.bad_entry", "line 1"),
        ("a.jsonl", b'{"question": "one"}', "prompts.bad_entry", "line 1"),
        ("a.jsonl", b'{"prompt": "  "}', "prompts.bad_entry", "line 1"),
        ("a.jsonl", b'{"prompt": 5}', "prompts.bad_entry", "line 1"),
        ("a.jsonl", b'{"messages": "one"}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": []}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": ["one"]}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": [{"role": "tool", "content": "x"}]}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": [{"role": ["user"], "content": "x"}]}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": [{"role": "assistant", "content": "x"}]}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": [{"role": "user", "content": " "}]}', "prompts.bad_messages", "line 1"),
        ("a.jsonl", b'{"messages": [{"role": "user", "content": []}]}', "prompts.bad_messages", "line 1"),
        (
            "a.jsonl",
            b'{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}',
            "prompts.bad_messages",
            "line 1",
        ),
        ("a.jsonl", b'{"prompt": "x", "max_tokens": 0}', "prompts.bad_max_tokens", "line 1"),
        ("a.jsonl", b'{"prompt": "x", "max_tokens": true}', "prompts.bad_max_tokens", "line 1"),
        ("a.jsonl", b'{"prompt": "x", "max_tokens": "many"}', "prompts.bad_max_tokens", "line 1"),
        ("a.csv", b"", "prompts.no_column", "a.csv"),
        ("a.csv", b"question,answer\na,b\n", "prompts.no_column", "question, answer"),
        ("a.csv", b"prompt\n", "prompts.none", "a.csv"),
        ("a.jsonl", b'{"prompt": "x", "max_tokens": ' + b"9" * 5000 + b"}", "prompts.bad_max_tokens", "line 1"),
        ("a.json", b'[{"prompt": "x", "max_tokens": -' + b"9" * 5000 + b"}]", "prompts.bad_max_tokens", "entry 1"),
        ("a.csv", b"prompt,max_tokens\none," + b"9" * 5000, "prompts.bad_max_tokens", "line 2"),
        ("a.txt", b"a\n" * 10_001, "prompts.too_many", "10000"),
        ("a.jsonl", GOOD.encode() * 10_001, "prompts.too_many", "10000"),
        ("a.csv", b"prompt\n" + b"a\n" * 10_001, "prompts.too_many", "10000"),
        ("a.csv", b"prompt,id\none,1\n,2\n", "prompts.bad_entry", "line 3"),
        ("a.csv", b"id,prompt\n1\n", "prompts.bad_entry", "line 2"),
        ("a.csv", b"prompt,max_tokens\none,-3\n", "prompts.bad_max_tokens", "line 2"),
        ("a.csv", b'prompt\n"one\n', "prompts.not_csv", "line 1"),
        ("a.json", b"{}", "prompts.not_a_list", "a.json"),
        ("a.json", b'[\n{"prompt": "x"},\n}]', "prompts.not_json", "line 3"),
        ("a.json", b'[{"prompt": "x"}, 5]', "prompts.bad_entry", "entry 2"),
        ("a.json", b'[{"conversations": [{"from": "gpt", "value": "x"}]}]', "prompts.none", "a.json"),
        ("a.json", b'[{"conversations": "x"}]', "prompts.none", "a.json"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, message_id: str, place: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        prompts.load(str(tmp_path / name))
    assert caught.value.message_id == message_id
    english, _ = (say_message(caught.value, locale) for locale in LOCALES)
    assert name in english
    assert place in english


def test_as_many_as_may_be(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n" * Limits().prompts)
    assert len(prompts.read(tmp_path / "a.txt")) == Limits().prompts


def test_nothing_is_read_beyond_the_limit(tmp_path: Path) -> None:
    """What follows the first prompt too many is not looked at: here it is no prompt at all."""
    (tmp_path / "a.jsonl").write_text(GOOD * (Limits().prompts + 1) + "{")
    with pytest.raises(InvalidInput) as caught:
        prompts.read(tmp_path / "a.jsonl")
    assert caught.value.message_id == "prompts.too_many"


@pytest.mark.parametrize(
    "content",
    [
        r'{"prompt": "a\ud83d"}',
        r'{"messages": [{"role": "user", "content": "a\ud83d"}]}',
        r'{"conversations": [{"from": "human", "value": "a\ud83d"}]}',
    ],
)
def test_half_an_emoji_becomes_a_replacement_character(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    assert texts(tmp_path / "a.jsonl") == ["a\ufffd"]


@pytest.mark.parametrize(
    ("name", "message_id", "hint"),
    [
        ("chatt", "prompts.no_such_set", "chat"),
        ("missing.txt", "prompts.unreadable", "missing.txt"),
        ("nul\0.txt", "prompts.unreadable", "null byte"),
        ("nul\0", "prompts.no_such_set", "nul"),
        ("half\ud83d.txt", "prompts.unreadable", "half\ufffd.txt"),
    ],
    ids=["set", "file", "NUL", "set with NUL", "half an emoji"],
)
def test_missing(name: str, message_id: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        prompts.load(name)
    assert caught.value.message_id == message_id
    assert hint in say_message(caught.value)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """Byte-level pairs, as in the models' own, trained on the built-in sets in a moment."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    corpus = [message.content for name in SIZES for p in prompts.load(name) for message in p.conversation]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet))
    return made


@pytest.mark.parametrize("tokens", [1, 2, 3, 7, 50, 1000])
def test_synthetic_length(tokenizer: Tokenizer, tokens: int) -> None:
    found = prompts.synthetic(tokenizer, tokens, count=5, seed=3, max_tokens=9)
    assert len(found) == 5
    for prompt in found:
        assert len(tokenizer.encode(prompt.conversation[0].content, add_special_tokens=False).ids) == tokens
        assert prompt.max_tokens == 9


def test_a_tokenizer_that_truncates_does_not_mislead(tokenizer: Tokenizer) -> None:
    cutting = Tokenizer.from_str(tokenizer.to_str())
    cutting.enable_truncation(8)
    (prompt,) = prompts.synthetic(cutting, 30, count=1, seed=1)
    assert len(tokenizer.encode(prompt.conversation[0].content).ids) == 30
    assert cutting.truncation is not None


def test_synthetic_prompts_follow_the_seed(tokenizer: Tokenizer) -> None:
    first, again, other = (prompts.synthetic(tokenizer, 30, count=4, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert not set(first) & set(other)
    assert len(set(first)) == 4


def test_generated_prompts_are_left_out_once_stopped(tokenizer: Tokenizer) -> None:
    """A million tokens ten thousand times once went on after Stop, with everything else standing still."""
    asked = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 40

    few = prompts.synthetic(tokenizer, 1000, count=10_000, seed=1, stopped=stopped)
    assert 0 < len(few) < 10
    assert not prompts.synthetic(tokenizer, 10**9, count=10_000, seed=1, stopped=lambda: True)
