"""The map of the house names functions, files and layers that exist."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.support.stores import fresh_url
from windlass import Windlass

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


STEPS = re.findall(r"^\| \d+ \|.*\| ([^|]*) \|$", PAGE, re.MULTILINE)


def function_of(named: str) -> Any:
    module, _, function = named.partition(":")
    return attrgetter(function)(import_module(module))


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(windlass[\w.]*:[\w.]+)`", PAGE))))
def test_every_function_that_is_named_exists(named: str) -> None:
    assert callable(function_of(named))


@contextmanager
def calls_of(names: list[str]) -> Iterator[list[str]]:
    """List those of some functions that are called on this thread, in the order of their first calls."""
    codes: dict[CodeType, str] = {function_of(name).__code__: name for name in names}
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := codes.get(frame.f_code)) is not None and name not in called:
            called.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("dialect", ["sqlite-file", "postgres"])
async def test_a_job_goes_the_way_that_is_described(request: pytest.FixtureRequest, tmp_path: Path, dialect: str) -> None:
    server = request.getfixturevalue("postgres_server") if dialect == "postgres" else None
    adapter = "sqlite" if server is None else "postgres"
    described = [next(one for one in named if len(named) == 1 or adapter in one) for named in map(_named, STEPS)]
    assert 0 < len(described) <= 18
    with fresh_url(dialect, tmp_path, server) as url:
        app = Windlass(url)

        @app.task
        async def send(to: str) -> None: ...

        async with app:
            with calls_of(described) as called:
                job = await send.enqueue("ada@example.org")
                async with app.working():
                    await job.result()
            runs = await app.executions(job)
    assert called == described
    assert [run.status for run in runs] == ["completed"]


def _named(step: str) -> list[str]:
    return re.findall(r"`([\w.:]+)`", step)


@pytest.mark.parametrize(
    "named", sorted(set(re.findall(r"`((?:core|store|client|http_client|wire|web|cli|upkeep|packs)/[\w/*.]*)`", PAGE)))
)
def test_every_file_that_is_named_exists(named: str) -> None:
    assert list((ROOT / "src" / "windlass").glob(named.rstrip("/")))


def test_the_layers_are_those_that_are_enforced() -> None:
    drawn = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert drawn is not None
    shown = [line.split("  ")[0].split(" | ") for line in drawn[1].splitlines()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    enforced = [re.sub(r"[()]", "", layer).split(" | ") for layer in contracts[0]["layers"]]
    assert shown == [[name for name in layer if name != "integrations"] for layer in enforced]


def test_no_class_name_is_used_in_two_modules() -> None:
    names = Counter(
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in set(re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    )
    # Django finds its commands by this name.
    assert [name for name, modules in names.items() if modules > 1 and name != "Command"] == []
