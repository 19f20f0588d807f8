"""The frozen base of all settings, and types of fields that several of them share."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from playground.domain.validation import refused

# The largest 64-bit integer: no setting of an engine is larger.
MOST = 2**63 - 1
PositiveInt = Annotated[int, Field(ge=1, le=MOST)]
Count = Annotated[int, Field(ge=0, le=MOST)]


def _auto_length(value: object) -> object:
    """-1 is vLLM's other word for auto."""
    return "auto" if value == -1 or (isinstance(value, str) and value.strip().lower() in ("auto", "-1")) else value


# Tokens of the longest sequence; auto: as many as there is room for, and the model was made for.
ModelLength = Annotated[PositiveInt | Literal["auto"], BeforeValidator(_auto_length)]
# No argument of a command may contain a NUL.
NO_NUL = r"^[^\x00]*$"
# One of vLLM's own words, which differ from version to version.
Word = Annotated[str, Field(max_length=200, pattern=NO_NUL)]
# The longest name of a file that file systems allow, in bytes.
LONGEST_PART = 255


def _names_a_file(name: str) -> str:
    if any(len(part.encode()) > LONGEST_PART for part in name.split("/")):
        raise refused("accepted.shorter_part", None, limit=LONGEST_PART)
    return name


# A folder, a hub id, or a name in the models folder.
ModelName = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f]+$"), AfterValidator(_names_a_file)
]


def _names_gpus(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,3}(,[0-9]{1,3}){0,63}", text):
        raise refused("accepted.gpu_numbers", None)
    return text


# GPUs by their numbers.
Cards = Annotated[str, AfterValidator(_names_gpus)]


def _allows(annotation: object, kind: type) -> bool:
    return annotation is kind or any(_allows(part, kind) for part in get_args(annotation))


class Frozen(BaseModel):
    """Validated when made, then immutable; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _true_is_no_number(cls, values: Any) -> Any:
        """pydantic would take true for 1."""
        for name, value in values.items() if isinstance(values, dict) else ():
            field = cls.model_fields.get(name)
            if isinstance(value, bool) and field and not _allows(field.annotation, bool):
                raise refused("accepted.no_truth_value", name, value=str(value).lower())
        return values
