"""The gallery: which preset fills the form, and a list of all that opens above the page."""

from __future__ import annotations

import logging

import gradio as gr

from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.domain.spec.settings import EngineSettings
from playground.engine.devices import Machine
from playground.engine.runtime import has_vllm
from playground.i18n import LOCALES, Locale
from playground.models import folders
from playground.presets import Preset
from playground.runs.host import Host
from playground.store import READERS
from playground.ui.shared import view

from . import offers

logger = logging.getLogger(__name__)


class Gallery:
    """Its component. A click on an offer triggers `click`, with the query of the offer's link."""

    def __init__(self, host: Host, machine: Machine, first: Preset) -> None:
        self._host = host
        self._machine = machine

        async def listed(language: object) -> str:
            locale: Locale = next((known for known in LOCALES if known == language), "en")
            return await READERS.run(self._listed, locale)

        self.component = gr.HTML(
            self.chosen(first, "en"),
            html_template='<div class="offers">${value}</div><div class="gallery" popover role="dialog"></div>',
            js_on_load=f"{view.asset('address.js')}\n{view.asset('gallery.js')}",
            apply_default_css=False,
            elem_id="preset",
            elem_classes="setup",
            server_functions=[listed],
        )

    def chosen(self, preset: Preset, locale: Locale) -> str:
        """The component's value: the preset that the form was filled from."""
        here = _here(self._host.config, preset)
        return offers.chosen(preset, self._machine, locale, here=here, vllm=has_vllm(self._host.config))

    def _listed(self, locale: Locale) -> str:
        results: offers.Results = {}
        try:
            results = self._host.history.latest_results(self._machine.as_record())
        except PlaygroundError:
            logger.exception("the presets are listed without results")
        return offers.listed(self._machine, results, locale, vllm=has_vllm(self._host.config))


def _here(config: Config, preset: Preset) -> bool:
    """Whether the models are on this machine, or somebody else's endpoint has them."""
    engines = [side.engine for side in preset.sides if isinstance(side.engine, EngineSettings)]
    models = {name for engine in engines for name in (engine.target, engine.draft) if name}
    return all(folders.local_folder(config, name) is not None for name in models)
