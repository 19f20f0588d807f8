"""What the playground has to know of an engine that is not vLLM, so that it can start one as a side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from playground.domain.errors import InvalidInput
from playground.domain.spec.engines import TITLES
from playground.domain.spec.settings import CARDS, EngineSettings

from .program import Program

# The address that each of them listens on.
HOST = "127.0.0.1"
SERVED_NAME = "playground"


@dataclass(frozen=True)
class Launch:
    """What an engine is to serve, and where. `target` and `draft` are folders, or GGUF files for a kind that reads
    those; `cores` is the number of the processor's cores it has; `kv_tokens`: how many tokens the host lets a KV
    cache on a CPU hold, None where that is not known."""

    settings: EngineSettings
    program: Program
    target: str
    draft: str | None
    port: int
    cores: int
    kv_tokens: int | None = None

    @property
    def k(self) -> int:
        """How many tokens it drafts at once."""
        return int(self.settings.speculation.model_dump().get("num_speculative_tokens") or 0)


@dataclass(frozen=True)
class Switch:
    """The flags of a setting that is on or off; None: that is how the engine is without a flag."""

    on: str | None = None
    off: str | None = None


Words = Callable[[Launch], list[str]]


@dataclass(frozen=True)
class Kind:
    """An engine, by the name that it has as a side's runtime.

    `find`: its program on this host, None where there is none; `brings`: what would bring it; `typed`: its
    command as it is typed elsewhere. `words`: the model,
    and where to listen. `knobs`: the settings that it has, by vLLM's names, and its own flags for them;
    `speculation`: its methods by vLLM's names. `counters`: fields of `Counters` and its names for them. `gguf`: it
    reads GGUF files. `answers_to`: the model's name in requests. `trust_flag`: lets it run a model's own code.
    """

    name: str
    find: Callable[[], Program | None]
    brings: str
    typed: str
    words: Words
    knobs: Mapping[str, str | Switch] = field(default_factory=dict)
    speculation: Mapping[str, Words] = field(default_factory=dict)
    counters: Mapping[str, str] = field(default_factory=dict)
    gguf: bool = False
    answers_to: Callable[[Launch], str] = lambda launch: SERVED_NAME
    trust_flag: str | None = None

    @property
    def title(self) -> str:
        """Its name as people write it."""
        return TITLES.get(self.name, self.name)

    def argv(self, launch: Launch) -> tuple[str, ...]:
        """The command for settings that were checked."""
        settings = launch.settings
        words = [*launch.program.words, *self.words(launch)]
        for name, value in settings.knobs.options.items():
            flag = self.knobs.get(name)
            if isinstance(flag, Switch):
                words += filter(None, [flag.on if value else flag.off])
            elif flag is not None:
                words.append(f"{flag}={value}")
        if settings.speculates:
            words += self.speculation[settings.speculation.method](launch)
        if settings.trust_remote_code and self.trust_flag:
            words.append(self.trust_flag)
        return tuple(words)

    def check(self, settings: EngineSettings, side: str) -> None:
        """Raises InvalidInput for a setting that this engine does not have."""
        for name in settings.knobs.overrides():
            if name not in self.knobs and name != CARDS:
                raise self._lacks(side, f"knobs.{name}", tuple(self.knobs))
        method = settings.speculation.method
        if method != "off" and method not in self.speculation:
            raise self._lacks(side, "speculation.method", ("off", *self.speculation), value=method)
        if settings.extra_flags:
            raise self._lacks(side, "extra_flags", ())
        if settings.trust_remote_code and self.trust_flag is None:
            raise self._lacks(side, "trust_remote_code", ())

    def _lacks(self, side: str, key: str, known: tuple[str, ...], value: str = "") -> InvalidInput:
        kind = "method" if key == "speculation.method" else "setting"
        return InvalidInput(
            f"kind.no_{kind}", side=side, key=key, value=value, engine=self.title, known=", ".join(known) or "-"
        )


def listening(launch: Launch, host: str = "--host", port: str = "--port") -> list[str]:
    """The flags that say where it listens."""
    return [f"{host}={HOST}", f"{port}={launch.port}"]
