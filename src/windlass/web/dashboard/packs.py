"""The lists of the packs whose tasks a process of the fleet has declared."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request

from windlass.core.feed import FETCH_TASK
from windlass.web.errors import Refusal
from windlass.web.job_shape import CRAWL
from windlass.web.request_context import reader_of


class PackList(NamedTuple):
    """A list that a pack fills."""

    path: str
    label: str
    task: str
    """What fills it."""
    pack: str


LISTS = (PackList("/pages", "Pages", CRAWL, "crawl"), PackList("/feeds", "Feeds", FETCH_TASK, "feeds"))


async def finds_of(request: Request) -> list[PackList]:
    """List what the packs of the fleet fill."""
    reader = reader_of(request)
    return [one for one in LISTS if await reader.declares(one.task)]


async def check_on(request: Request, path: str) -> list[PackList]:
    """Return the lists there are; refuse one whose pack is not on."""
    found = await finds_of(request)
    if path not in {one.path for one in found}:
        [pack] = [one.pack for one in LISTS if one.path == path]
        raise Refusal(404, f"no process has the pack {pack}; start a worker with --packs {pack}")
    return found
