"""The map of the house names functions, files and layers that exist."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(windlass[\w.]*:[\w.]+)`", PAGE))))
def test_every_function_that_is_named_exists(named: str) -> None:
    module, _, function = named.partition(":")
    assert callable(attrgetter(function)(import_module(module)))


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
