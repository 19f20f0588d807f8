"""Text as it was copied -> plain text: without the marks of a terminal, a document or a word processor."""

from __future__ import annotations

import html
import re

from .notes import Notes

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
ENTITY = re.compile(r"&(?:amp|lt|gt|quot|nbsp|#39|#x27|#34);")
INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]|[\x00-\x08\x0e-\x1f\x7f]")
# Blanks that are none to a shell.
BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\x0b\x0c]")
NEWLINES = re.compile("\r\n|[\r\u0085\u2028\u2029]")
QUOTES = (
    ("'", re.compile("[\u2018\u2019\u201a\u201b\u2032]")),
    ('"', re.compile("[\u201c\u201d\u201e\u201f\u2033]")),
)
# A word processor makes one long dash of two short ones.
DASH = r"[\u2010-\u2015\u2212\uff0d]"
DASHES = re.compile(rf"(?<!\S)(?=-*{DASH})((?:-|{DASH})+)(?=[A-Za-z])([\w.-]*)")
HYPHENS = re.compile(r"(?<=\w)[\u2010\u2011](?=\w)")
SHORTEST_LONG = 4

FENCE = re.compile(r"^[ \t>]*(```+|~~~+)[^`\n]*$", re.MULTILINE)
QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]*\bvllm[ .][^`\n]*)`(?!`)")
PROMPT = re.compile(
    r"""^[ \t]*
    ((?:\([^()\n]{1,60}\)[ \t]*)*
    (?: \[?[\w.+-]{1,60}@[\w.-]{1,80}[^\n#$%>'"]{0,120}[#$%>](?=[ \t])
      | \[[^\]\n]{1,80}\][#$%](?=[ \t])
      | (?:ba|z|k)?sh-[\d.]{1,8}[#$](?=[ \t])
      | PS(?:[ ][^>\n]{0,120})?>
      | [A-Za-z]:\\[^>\n'"]{0,120}>
      | \u279c[ \t]+\S{1,80}(?:[ \t]+git:\(\S{1,80}\))?(?:[ \t]+\u2717)?(?=[ \t])
      | [~/][\w./~-]{0,80}[ \t]?[$%#\u276f](?=[ \t])
      | [$%\u276f\u279c\u00bb](?=[ \t]) | >>>(?=[ \t]) | In[ ]\[\d*\]:(?:[ \t]*!)?
      | %%(?:bash|sh)\b.* | !(?=[ \t]*[\w./]) | @(?=[A-Za-z])
      | Exec(?:Start|StartPre|StartPost)=[-@:+!]* | command[ \t]*=[ \t]*(?=\S*(?:vllm|python|docker))
    ))[ \t]*""",
    re.MULTILINE | re.VERBOSE,
)
REPL = re.compile(r"^(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)


def cleaned(text: str, notes: Notes) -> str:
    """Plain text. Typographic quotes are plain ones where a text has no plain ones of that kind."""
    text = NEWLINES.sub("\n", text)
    whole = html.unescape(text) if ENTITY.search(text) else text
    plain = BLANKS.sub(" ", INVISIBLE.sub("", ANSI.sub("", whole)))
    plain = HYPHENS.sub("-", DASHES.sub(_dashes, plain))
    for quote, typographic in QUOTES:
        if quote not in plain:
            plain = typographic.sub(quote, plain)
    if plain != text:
        notes.say("paste.typographic")
    return plain


def _dashes(match: re.Match[str]) -> str:
    dashes, name = match.groups()
    plain = len(dashes) == 1 and dashes != "\u2014" and len(name) < SHORTEST_LONG
    return ("-" if plain else "--") + name


def blocks(text: str, notes: Notes) -> list[str]:
    """The code in a document: its fenced blocks, else its inline code that starts vLLM, else all of it."""
    fences = list(FENCE.finditer(text))
    if not fences:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and all(QUOTED.match(line) for line in lines):
            text = QUOTED.sub("", text)
        inline = [match[1] for match in INLINE.finditer(text)]
        if inline and inline[0] != text.strip().strip("`"):
            notes.leave(_words(INLINE.sub("", text)), "paste.prose")
        return inline or [text]
    outside, inside, at, opened = "", list[str](), 0, ""
    for fence in fences:
        if opened and not fence[1].startswith(opened):
            continue
        piece = text[at : fence.start()]
        if opened:
            inside.append(piece)
        else:
            outside += piece
        opened, at = "" if opened else fence[1], fence.end()
    if opened:
        inside.append(text[at:])
    else:
        outside += text[at:]
    if outside.strip():
        notes.leave(_words(outside), "paste.prose")
    return inside


def _words(text: str) -> str:
    """The beginning of prose."""
    return " ".join(text.split()[:6]) + " …"


def without_prompts(text: str, notes: Notes) -> str:
    """Shell text without what a terminal, a notebook or a service file writes before a command."""

    def left(match: re.Match[str]) -> str:
        notes.leave(match[1], "paste.prompt")
        return ""

    return PROMPT.sub(left, text)


def without_python_prompts(text: str) -> str:
    """A session without its prompts, and without what was printed where every typed line has a prompt."""
    if not re.search(r"^>>> ", text, re.MULTILINE):
        return text
    typed = "\n".join(line for line in text.splitlines() if REPL.match(line))
    return REPL.sub("", typed if typed.count("(") == typed.count(")") else text)
