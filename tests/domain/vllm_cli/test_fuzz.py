"""Any text is read or refused: no traceback, no hang, no growth."""

from __future__ import annotations

import contextlib
import time
import tomllib
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from playground.domain.errors import InvalidInput
from playground.domain.vllm_cli import paste
from playground.i18n import say_message

PIECES = [
    *"'\"\\^`$#&|;<>(){}[]-=:!%,\n\t ",
    *("$(", "${", "}", "<<EOF\n", "EOF\n", "> f ", "2>&1", "&&", "\\\n", "\\ \n", "```\n", "- ", "---\n", "\r\n"),
    *(
        "vllm serve ",
        "org/x ",
        "--seed 1 ",
        "--max-num-seqs",
        " --speculative-config ",
        "-sc.a.b+ ",
        "-O3 ",
        "-tp ",
    ),
    *('{"method": "ngram"}', "A=x ", "A=(", "A+=$A$A", "$A ", "${A:-d} ", '"${A[@]}" ', "export ", "env -u "),
    *(
        "docker run ",
        "-v a:b ",
        "--entrypoint ",
        "vllm/vllm-openai ",
        "bash -c ",
        "python3 -u -m vllm.entrypoints.x ",
    ),
    *(
        "services:\n",
        "  args: ",
        "  command: ",
        "  image: vllm/vllm-openai\n",
        "model: org/x\n",
        "&a ",
        "*a ",
        "<<: *a\n",
    ),
    *(
        "FROM a\n",
        "CMD ",
        "ENTRYPOINT ",
        "LLM(",
        "model='x'",
        ", **k",
        ">>> ",
        "user@h:~$ ",
        "\u201c",
        "\u2019",
        "\u2014a ",
    ),
    *("\x1b[31m", "\x00", "\u00a0", "\ud800", "\u6c49"),
]
CASES = [
    case["text"]
    for path in sorted((ROOT / "tests" / "cases" / "paste").glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
]
MADE_UP = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """What somebody pasted, with pieces lost and others in their place."""
    text = draw(st.sampled_from(CASES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from([*PIECES, "${}", '${}"', *CASES[:20]]))
        text = text[:start] + piece + text[start + draw(st.integers(0, 12)) :]
    return text


@settings(max_examples=400, derandomize=True, deadline=None)
@given(MADE_UP | damaged())
def test_any_text(text: str) -> None:
    try:
        pasted = paste.read(text)
    except InvalidInput as refusal:
        sentences = [say_message(refusal)]
    else:
        sentences = [say_message(note) for note in pasted.notes]
    assert all("\n" not in sentence for sentence in sentences)


BOMBS = {
    "variables": "A=xxxxxxxxxx\n" + "A=$A$A$A$A\n" * 60 + "vllm serve $A",
    "references": "a: &a [x, x, x, x, x, x, x, x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 8)}]\n" for i in range(12)),
    "itself": "a: &a [*a]\n",
    "substitutions": "vllm serve m " + "$(" * 49_000,
    "quotes": "vllm serve m " + "a'a" * 30_000,
    "brackets": "[" * 3_000,
    "items": "- a:\n" * 5_000,
    "shells": "bash -c '" * 10_000 + "vllm serve m",
    "fences": "```\n" * 25_000,
    "options": "vllm serve m " + "--seed 1 " * 10_000,
    "dotted": "vllm serve m --speculative-config." + "a." * 45_000 + "a 1",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_that_grows_or_never_ends(name: str) -> None:
    started = time.perf_counter()
    with contextlib.suppress(InvalidInput):
        paste.read(BOMBS[name])
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize("name", ["variables", "references"])
def test_a_text_that_grows_takes_little_memory(name: str) -> None:
    tracemalloc.start()
    with contextlib.suppress(InvalidInput):
        paste.read(BOMBS[name])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 50_000_000
