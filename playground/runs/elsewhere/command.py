"""A place that a shell's command reaches: ssh, srun, kubectl."""

from __future__ import annotations

import asyncio
import logging

from playground.domain.errors import InvalidInput, WorkFailed
from playground.processes import exit_code_text, piped

from .place import MEASURE

logger = logging.getLogger(__name__)
PLACEHOLDER = "{}"
# The longest output; the requests' raw timings are most of it.
MOST_BYTES = 512 * 1024 * 1024


class CommandPlace:
    """`template`: a shell's command, in which {} stands for what runs there. Raises InvalidInput without it."""

    def __init__(self, template: str) -> None:
        if PLACEHOLDER not in template:
            raise InvalidInput("elsewhere.no_placeholder", template=template)
        self.name = template
        # Nothing in what is put in needs quoting, at whatever depth.
        self._command = template.replace(PLACEHOLDER, MEASURE)

    async def measure(self, case: str, stopping: asyncio.Event, within_s: float) -> str:
        try:
            code, output, errors = await piped(self._command, case + "\n", stopping, within_s, MOST_BYTES)
        except TimeoutError as error:
            raise WorkFailed("elsewhere.timeout", place=self.name, seconds=within_s) from error
        except ValueError as error:
            raise WorkFailed("elsewhere.too_much", place=self.name, limit=MOST_BYTES) from error
        logger.info("%s: %s", self.name, errors)
        # What greets whoever logs in comes first.
        begin = ("\n" + output).find("\n{")
        # The document of a run that failed says why, whatever the exit code.
        if begin < 0:
            detail = (errors or output).strip().rpartition("\n")[2][-300:] or "-"
            raise WorkFailed("elsewhere.no_answer", place=self.name, code=exit_code_text(code), detail=detail)
        return output[begin:]
