"""docs/api.md names what is public, and everything it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import windlass
from tests.docs.blocks import ROOT, blocks, pages

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
SUBMODULES = ("packs",)


def public_modules() -> list[tuple[str, str]]:
    """List the modules of the page, each with its names as they are written there."""
    return re.findall(r"^\| `(windlass\.[\w.]+)` \| (.*?) \|", PAGE, re.MULTILINE)


def test_the_page_lists_exactly_what_windlass_exports() -> None:
    part = PAGE.partition("## From `windlass`")[2].partition("## From its modules")[0]
    listed = [name for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted([*listed, "__version__"]) == sorted(windlass.__all__)
    assert len(set(listed)) == len(listed)


def test_every_name_can_be_imported() -> None:
    for name in windlass.__all__:
        assert getattr(windlass, name) is not None
    modules = public_modules()
    assert len(modules) >= 8
    named = [(module, name) for module, names in modules for name in re.findall(r"`(\w+)`", names)]
    # In a process of its own: some modules choose things for the process that imports them, as Django's does the SQLite library.
    code = (
        "import sys\nfrom importlib import import_module\nfrom importlib.util import find_spec\n"
        f"for module, name in {named!r}:\n"
        # A submodule is an attribute once it is imported.
        "    assert hasattr(import_module(module), name) or find_spec(f'{module}.{name}'), (module, name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_type_checkers_see_each_name_as_exported() -> None:
    text = (ROOT / "src" / "windlass" / "__init__.py").read_text(encoding="utf-8")
    assert sorted(re.findall(r"import (\w+) as \1$", text, re.MULTILINE)) == sorted(set(windlass.__all__) - {"__version__"})


def test_a_star_import_gives_them_and_import_alone_loads_none() -> None:
    code = "import sys, windlass; assert 'windlass.app' not in sys.modules; from windlass import *; print(Windlass.__name__)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "Windlass\n", done.stderr


def test_pages_and_examples_import_public_names_only() -> None:
    listed = {(module, name) for module, names in public_modules() for name in re.findall(r"`(\w+)`", names)}
    public = listed | {("windlass", name) for name in [*windlass.__all__, *SUBMODULES]}
    texts = {page: "\n".join(block.text for block in blocks(page, "python")) for page in pages()}
    texts |= {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("examples/**/*.py")}
    used = {(page, one) for page, text in texts.items() for one in imports(text)}
    assert len(used) > 100
    assert {(page, one) for page, one in used if one not in public} == set()


def imports(text: str) -> Iterator[tuple[str, str]]:
    """List what a program imports from windlass."""
    for module, names in re.findall(r"^ *from (windlass[\w.]*) import (\([^)]*\)|[^#\n]*)", text, re.MULTILINE):
        yield from ((module, name) for name in re.findall(r"\w+", re.sub(r" as \w+", "", names)))
