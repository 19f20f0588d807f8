"""What pydantic's ValidationError says: which fields were refused, and why."""

from __future__ import annotations

import re

from .tracebacks import LoggedException

MODEL = re.compile(r"validation errors? for (?P<model>\w+)")
# The reason is indented below its field; a model's own check has none.
FIELD = re.compile(r"(?P<field>[A-Za-z_][\w.\[\]-]{0,100})$")
REASON = re.compile(r"  (?:Value error, |Assertion failed, )?(?P<reason>.+?)(?: \[type=(?P<type>\w+),.*)?$")
LEAST = re.compile(r"greater than (?P<or_equal>or equal to )?(?P<bound>\d+)$")
MOST_FIELDS = 5


def refused_fields(exception: LoggedException) -> dict[str, object]:
    """`detail`: each field with its reason. `fields`: their names. `least`: what a number may be at least, if it
    is all that was refused. `model`: the class that has the fields."""
    header = MODEL.search(exception.lines[0])
    reasons, fields, field, least = list[str](), list[str](), "", None
    for line in exception.lines[1:]:
        if match := FIELD.match(line):
            field = match["field"]
        elif (match := REASON.match(line)) and not match["reason"].startswith("  For further information"):
            if len(reasons) < MOST_FIELDS:
                reasons.append(f"{field}: {match['reason']}" if field else match["reason"])
                fields += [field] if field else []
            if bound := LEAST.search(match["reason"]):
                least = int(bound["bound"]) + (bound["or_equal"] is None)
            field = ""
    single = least if len(fields) == 1 and least is not None else "-"
    return {
        "detail": "; ".join(reasons) or exception.lines[0],
        "fields": " ".join(fields),
        "least": single,
        "model": header["model"] if header else "",
    }
