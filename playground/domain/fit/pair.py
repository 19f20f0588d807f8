"""Will this speculation work with this target: tokenizers by content, contexts, sizes, method, sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import DraftModel
from playground.domain.spec.workload import Sampling

from .issue import Changes, FitIssue
from .memory import Model, full_length
from .path_issues import path_issues

PairVerdict = Literal["works", "works, but", "will not work"]

# Beginnings that mean a space, by tokenizer kind; vLLM's heterogeneous vocabulary takes them for the same.
SPACES = ("\u0120", "\u2581")
# Below this share of equal token ids, draft and target have different tokenizers.
SAME_VOCABULARY = 0.5
# In practice a good draft has a fifth to a tenth of the target's size; the limits add some leeway (1.5B for 7B).
LARGEST, SMALLEST = 1 / 4, 1 / 12
OFF: Changes = (Change("speculation", "off"),)
HETEROGENEOUS: Changes = (Change("speculation.use_heterogeneous_vocab", True),)


@dataclass(frozen=True)
class Tokens:
    """A tokenizer's content. `added`: special and added tokens -> their id and whether they are special."""

    vocabulary: Mapping[str, int]
    merges: tuple[str, ...] = ()
    added: Mapping[str, tuple[int, bool]] = field(default_factory=dict)
    chat_template: str | None = None

    @property
    def ids(self) -> dict[str, int]:
        """Every token and its id."""
        return {**self.vocabulary, **{token: number for token, (number, _) in self.added.items()}}


@dataclass(frozen=True, slots=True)
class Abilities:
    """The runtime's abilities. `device` is "cpu" or "cuda"; `suffix`: it has arctic-inference; `schedules`: it can
    choose k by the size of the batch."""

    version: str
    device: str
    heterogeneous: bool = True
    suffix: bool = True
    schedules: bool = True


@dataclass(frozen=True, slots=True)
class Partner:
    """What is known of a target or a draft; None: unknown."""

    model: Model | None
    tokens: Tokens | None


@dataclass(frozen=True, slots=True)
class Pair:
    """`equal_ids`: the share of the target's tokens that mean the same to the draft; None where not compared."""

    method: str
    issues: tuple[FitIssue, ...] = ()
    equal_ids: float | None = None
    size_ratio: float | None = None

    @property
    def verdict(self) -> PairVerdict | None:
        """Whether the pair works; None without speculation, and where it is unknown."""
        levels = {issue.level for issue in self.issues}
        if "blocking" in levels:
            return "will not work"
        if self.method == "off" or "unknown" in levels:
            return None
        return "works, but" if "warning" in levels else "works"


def check(
    settings: EngineSettings, target: Partner, draft: Partner | None, runtime: Abilities, sampling: Sampling
) -> Pair:
    """`draft` None: the method runs no second model."""
    method = settings.speculation.method
    if method == "off":
        return Pair(method)
    issues = [*_method(settings, target, runtime), *_sampling(sampling)]
    path = path_issues(settings, runtime.version, runtime.device, schedules=runtime.schedules)
    if draft is None:
        return Pair(method, (*issues, *path))
    equal = _equal_ids(target.tokens, draft.tokens)
    if isinstance(settings.speculation, DraftModel):
        issues += _vocabulary(settings.speculation, target, draft, runtime, equal)
        issues += _writing(target.tokens, draft.tokens)
        issues += _sizes(target.model, draft.model)
    issues += _contexts(settings, target.model, draft.model)
    return Pair(method, (*issues, *path), equal, _ratio(target.model, draft.model))


def _method(settings: EngineSettings, target: Partner, runtime: Abilities) -> list[FitIssue]:
    speculation = settings.speculation
    if runtime.device == "cpu" and speculation.needs_gpu:
        return [_blocking("preflight.method_not_on_cpu", True, OFF, method=speculation.method)]
    if speculation.needs_arctic and not runtime.suffix:
        return [_blocking("preflight.no_arctic", True, OFF, version=runtime.version)]
    if speculation.target_layers and target.model is not None and not target.model.shape.mtp_layers:
        return [_blocking("preflight.no_mtp_layers", False, OFF)]
    return []


def _sampling(sampling: Sampling) -> list[FitIssue]:
    """vLLM refuses each such request under speculation; logit_bias too, which a workload here cannot have."""
    return [_blocking("preflight.min_p", True, OFF, min_p=sampling.min_p)] if sampling.min_p else []


def _vocabulary(
    speculation: DraftModel, target: Partner, draft: Partner, runtime: Abilities, equal: float | None
) -> list[FitIssue]:
    if speculation.use_heterogeneous_vocab:
        return _heterogeneous(speculation, target.tokens, draft.tokens, runtime)
    offered = (HETEROGENEOUS, OFF) if runtime.heterogeneous else (OFF,)
    sizes = [partner.model.shape.vocabulary if partner.model else None for partner in (target, draft)]
    if None not in sizes and sizes[0] != sizes[1]:
        # vLLM compares these numbers, not the tokens: the same tokenizer may be padded to different sizes.
        same = "padding" if equal == 1 else "vocabulary_size"
        return [_blocking(f"preflight.{same}", True, *offered, target=sizes[0], draft=sizes[1])]
    if equal is None:
        return [FitIssue(Message("preflight.no_tokenizer"), "unknown")]
    share: dict[str, object] = {"percent": 100 * equal}
    if equal < SAME_VOCABULARY:
        synthetic = speculation.rejection_sample_method == "synthetic"
        return [_blocking("preflight.other_vocabulary", not synthetic, *offered, **share)]
    return [FitIssue(Message("preflight.some_tokens", share), "warning")] if equal < 1 else []


def _heterogeneous(
    speculation: DraftModel, target: Tokens | None, draft: Tokens | None, runtime: Abilities
) -> list[FitIssue]:
    """Issues of a heterogeneous vocabulary: it needs greedy drafts, and uses only tokens that both models have."""
    if not runtime.heterogeneous:
        return [_blocking("preflight.no_heterogeneous", True, OFF, version=runtime.version)]
    if speculation.draft_sample_method == "probabilistic":
        greedy = (Change("speculation.draft_sample_method", None),)
        return [_blocking("preflight.heterogeneous_greedy", True, greedy)]
    if target is None or draft is None or not target.ids:
        return [FitIssue(Message("preflight.no_tokenizer"), "unknown")]
    texts = [{_spaced(token) for token in tokens.ids} for tokens in (target, draft)]
    share = len(texts[0] & texts[1]) / len(texts[0])
    if share == 1:
        return [FitIssue(Message("preflight.heterogeneous_same"), "note")]
    return [FitIssue(Message("preflight.heterogeneous", {"percent": 100 * share}), "warning")]


def _writing(target: Tokens | None, draft: Tokens | None) -> list[FitIssue]:
    """Issues of tokenizers that turn the same text into other tokens, or another prompt."""
    if target is None or draft is None:
        return []
    issues: list[FitIssue] = []
    if target.merges != draft.merges:
        issues.append(FitIssue(Message("preflight.merges"), "warning"))
    if target.added != draft.added:
        names = sorted(name for name, _ in set(target.added.items()) ^ set(draft.added.items()))
        more = {"count": len(names), "examples": ", ".join(names[:3])}
        issues.append(FitIssue(Message("preflight.added_tokens", more), "warning"))
    if target.chat_template and draft.chat_template and target.chat_template != draft.chat_template:
        issues.append(FitIssue(Message("preflight.chat_template"), "note"))
    return issues


def _sizes(target: Model | None, draft: Model | None) -> list[FitIssue]:
    ratio = _ratio(target, draft)
    if ratio is None or SMALLEST <= ratio <= LARGEST:
        return []
    if ratio > LARGEST:
        return [FitIssue(Message("preflight.large_draft", {"percent": 100 * ratio}), "warning")]
    return [FitIssue(Message("preflight.small_draft", {"times": 1 / ratio}), "note")]


def _contexts(settings: EngineSettings, target: Model | None, draft: Model | None) -> list[FitIssue]:
    if target is None or draft is None:
        return []
    longest = full_length(settings, target.shape)
    limit = getattr(settings.speculation, "max_model_len", None)
    known = [length for length in (draft.shape.context, limit) if length is not None]
    if longest is None or not known or min(known) >= longest:
        return []
    return [FitIssue(Message("preflight.draft_context", {"draft": min(known), "target": longest}), "warning")]


def _equal_ids(target: Tokens | None, draft: Tokens | None) -> float | None:
    if target is None or draft is None or not target.ids:
        return None
    other = draft.ids
    return sum(other.get(token) == number for token, number in target.ids.items()) / len(target.ids)


def _ratio(target: Model | None, draft: Model | None) -> float | None:
    return draft.parameters / target.parameters if target and draft and target.parameters else None


def _spaced(token: str) -> str:
    return " " + token[1:] if token.startswith(SPACES) else token


def _blocking(message_id: str, certain: bool, *remedies: Changes, **params: object) -> FitIssue:
    return FitIssue(Message(message_id, params), "blocking", certain, remedies)
