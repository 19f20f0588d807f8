"""A race as its followers see it: new tokens many times a second, figures a few times."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from playground.config import Config
from playground.domain.record.metrics import request_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.token_sources import MOST_TOKENS, estimated_in_chunk, token_origins
from playground.domain.record.traces import Chunk, RequestTrace
from playground.i18n import Locale, say, say_message
from playground.models import folders
from playground.models.tokenizer import TokenText, token_text
from playground.report.answer import next_steps, race_sentences
from playground.report.figures import number
from playground.report.side_summary import race_figures, readable
from playground.report.tables import failed
from playground.runs.comparison import Comparison

from .painter import Painter, Stage

FACTS_INTERVAL_S = 0.25
SILENCE_S = 5.0


class RacePainter(Painter):
    def __init__(
        self,
        config: Config,
        run: Run,
        locale: Locale,
        comparison: Comparison | None = None,
        earlier: Run | None = None,
    ) -> None:
        super().__init__(config, run, locale, comparison, earlier)
        self._answers = [_Answer(config, side) for side in run.sides]
        self._facts_at = 0.0

    def _paint(self, now: float, whole: bool) -> dict[str, Any]:
        with_facts = whole or now - self._facts_at >= FACTS_INTERVAL_S
        if with_facts and not whole:
            self._facts_at = now
        sides = []
        for index in range(len(self._answers)):
            painted = {**self._side(index), **self._grown(index, whole)}
            if with_facts:
                painted |= self._details(index, self._stage(index, now))
            sides.append(painted)
        verdict = self._verdict() if self._run.status != "running" else ""
        return {"headline": self._headline(), "verdict": verdict, "note": self._note(), "sides": sides}

    def _grown(self, index: int, whole: bool) -> dict[str, Any]:
        side = self._run.sides[index]
        if side.settings.synthetic:
            return {"from": 0, "spans": [(readable(side, "", self._locale), 0)], "reset": whole}
        return self._answers[index].grown(whole)

    def _headline(self) -> str:
        run, locale = self._run, self._locale
        if run.status == "running":
            return self._phase()
        observed = [say_message(sentence, locale) for sentence in race_sentences(run)]
        if run.status == "done" and observed:
            return " ".join(observed)
        speeds = [
            (side.label, figures.decode_tokens_per_s)
            for side in run.sides
            for trace in side.requests
            if (figures := request_figures(trace))
        ]
        parts = [say(f"race.{run.status}", locale)]
        parts += [say("race.speed", locale, side=name, speed=number(speed)) for name, speed in speeds]
        return " · ".join(parts)

    def _note(self) -> str:
        run, locale = self._run, self._locale
        if run.problem is not None:
            return self._failure(run.problem)
        if run.status == "running" or not any(trace.chunks for side in run.sides for trace in side.requests):
            return ""
        return " ".join(say_message(step, locale) for step in next_steps(run))

    def _stage(self, index: int, now: float) -> Stage:
        locale, comparison, side = self._locale, self._comparison, self._run.sides[index]
        if comparison is None or self._run.status != "running":
            return self._unserved(side), None
        if comparison.live.phase != "streaming":
            return self._starting(index, now)
        trace = side.requests[0]
        if trace.ended or comparison.live.since is None:
            return "", None
        last = trace.chunks[-1].ms + trace.sent_ms if trace.chunks else trace.sent_ms
        silent = now - comparison.live.since - last / 1000
        return (say("race.silent", locale, seconds=silent) if silent > SILENCE_S else ""), None

    def _details(self, index: int, stage: Stage) -> dict[str, Any]:
        side = self._run.sides[index]
        contended = [say("figure.contended", self._locale)] if side.placement and side.contended else []
        broken = next((trace.problem for trace in side.requests if not side.problem and failed(trace)), None)
        return {
            "place": self._place(side, *contended),
            "stage": stage[0],
            "fraction": stage[1],
            "command": side.command,
            "facts": race_figures(side, self._locale),
            "legend": self._legend(index),
            "idle": self._run.status != "running" and not side.requests,
            "problem": self._problem(side, [say_message(broken, self._locale)] if broken else []),
        }

    def _legend(self, index: int) -> list[tuple[str, str]]:
        """The legend of the colours; empty on a side without speculation, where nothing is coloured."""
        answer = self._answers[index]
        if not self._run.sides[index].settings.speculates or not answer.spans:
            return []
        how = "settled" if answer.settled else "estimated"
        return [(name, say(f"legend.{name}", self._locale)) for name in ("target", "draft", how)]


class _Answer:
    """One side's answer in pieces: `spans` are (text, 1 where it came from accepted drafts)."""

    def __init__(self, config: Config, side: SideRecord) -> None:
        self._config = config
        self._side = side
        self._flags: list[bool] = []
        self._counted = bool(side.settings.speculates)
        self._chunks_done = 0
        self._examined = False
        self._recoloured = False
        self._painted = 0
        self._text: TokenText | None = None
        self.spans: list[tuple[str, int]] = []
        self.settled = False

    def grown(self, whole: bool) -> dict[str, Any]:
        """The spans that are new; all of them, with `reset`, if `whole` or if earlier ones changed."""
        self._grow()
        if whole:
            return {"from": 0, "spans": self.spans, "reset": True}
        reset, start = self._recoloured, 0 if self._recoloured else self._painted
        self._recoloured, self._painted = False, len(self.spans)
        return {"from": start, "spans": self.spans[start:], "reset": reset}

    def _grow(self) -> None:
        """Take in new chunks."""
        if not self._side.requests:
            return
        trace = self._side.requests[0]
        for chunk in trace.chunks[self._chunks_done :]:
            # Without a count of tokens, the sources of this chunk's and all later tokens are unknown.
            self._counted = self._counted and chunk.tokens is not None and chunk.tokens <= MOST_TOKENS
            flags = estimated_in_chunk(self._chunks_done, chunk.tokens or 0) if self._counted else []
            self._flags += flags
            self._add(chunk, flags)
            self._chunks_done += 1
        self._settle(trace)

    def _settle(self, trace: RequestTrace) -> None:
        """Once, when the request has ended: colour again where the engine's step record differs from the
        estimate."""
        if self._examined or not trace.ended or not self._counted:
            return
        self._examined = True
        origins, self.settled = token_origins(trace, speculates=True)
        if not self.settled or origins is None or origins == self._flags:
            return
        self._recoloured = True
        sizes = [chunk.tokens or 0 for chunk in trace.chunks]
        self.spans = []
        for chunk, end in zip(trace.chunks, accumulate(sizes), strict=True):
            self._add(chunk, origins[end - (chunk.tokens or 0) : end])

    def _add(self, chunk: Chunk, flags: list[bool]) -> None:
        self.spans += self._split(chunk.text, chunk.token_ids, flags)

    def _split(self, text: str, ids: tuple[int, ...] | None, flags: list[bool]) -> list[tuple[str, int]]:
        if not any(flags):
            return [(text, 0)]
        if all(flags):
            return [(text, 1)]
        if self._text is None:
            self._text = token_text(folders.local_folder(self._config, self._side.settings.target))
        pieces = self._text.split(text, ids)
        if pieces is None:
            return [(text, 1)]
        return [(piece, int(flag)) for piece, flag in zip(pieces, flags, strict=True)]
