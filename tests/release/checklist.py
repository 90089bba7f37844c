"""What has to be true before a release, tried one after the other. `python3 dev.py release --dry-run` runs it."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dev
from tests.docs.blocks import blocks, lines
from windlass import __version__

ROOT = Path(__file__).parents[2]
MOST = {"": 14, "all": 50}
"""How many packages an installation may bring, by extra, Windlass itself among them."""
LOWEST = ("tests/store/test_finish.py", "tests/worker/test_app_worker.py")
"""What is run with the lowest versions: a store and a worker, on every database."""
GUIDES = ("docs/fastapi.md", "docs/flask.md")
"""Pages whose first command installs what their first program needs."""
URLS = ("Changelog", "Documentation", "Issues", "Source")
"""Where the page of a package leads."""
_SMOKE = """
import asyncio
from windlass import Windlass
app = Windlass("sqlite:///smoke.db")

@app.task
async def add(a: int, b: int) -> int:
    return a + b

async def main() -> None:
    async with app, app.working():
        assert await app.wait(await add.enqueue(a=2, b=3), timeout=30) == 5

asyncio.run(main())
"""
_LOADED = {
    "server": "windlass.web.server",
    "postgres": "windlass.store.postgres",
    "remote": "windlass.remote",
    "packs": "windlass.packs.crawl",
}
"""What an extra is for: this must be importable with it and nothing more."""


@dataclass(frozen=True)
class Built:
    """What was built: what is uploaded."""

    wheel: Path
    source: Path


class NotReady(Exception):
    """Something of the checklist does not hold."""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command of the development environment; raises NotReady with what it printed."""
    typed = [str(part) for part in command]
    done = subprocess.run(typed, cwd=cwd, env=dev.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"{' '.join(typed)}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> Built:
    """Build wheel and source archive, and let twine read them."""
    run(dev.UV, "build", "--quiet", "--out-dir", folder)
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    run(dev.PYTHON, "-m", "twine", "check", "--strict", wheel, source)
    return Built(wheel, source)


def extras() -> list[str]:
    """Name every extra of pyproject.toml."""
    return sorted(_project()["optional-dependencies"])


def _project() -> dict[str, Any]:
    project: dict[str, Any] = _pyproject()["project"]
    return project


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@contextmanager
def installed(what: str | Path, *options: str) -> Iterator[Path]:
    """Install something into an empty environment, and give its folder."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run(dev.UV, "venv", "--quiet", "--python", dev.PYTHON, folder / "venv")
        run(dev.UV, "pip", "install", "--quiet", "--python", _python(folder), *options, str(what))
        yield folder


def _python(folder: Path) -> Path:
    return folder / "venv" / "bin" / "python"


def count_packages(folder: Path) -> int:
    """Count what an installation brought."""
    return len(run(dev.UV, "pip", "list", "--quiet", "--format", "freeze", "--python", _python(folder)).splitlines())


def try_wheel(wheel: Path, extra: str, *options: str) -> int:
    """Install a wheel with an extra into an empty environment, use it, and count what came with it."""
    with installed(f"{wheel}[{extra}]" if extra else wheel, *options) as folder:
        printed = run(folder / "venv" / "bin" / "windlass", "--version", cwd=folder)
        if printed.strip() != f"windlass {__version__}":
            raise NotReady(f"the wheel says {printed.strip()!r}, and the code {__version__!r}")
        run(_python(folder), "-W", "error", "-c", _SMOKE, cwd=folder)
        for module in [_LOADED[extra]] if extra in _LOADED else _LOADED.values() if extra.startswith("all") else ():
            run(_python(folder), "-c", f"import {module}", cwd=folder)
        packages = count_packages(folder)
    if packages > MOST.get(extra, MOST["all"]):
        raise NotReady(f"windlass[{extra}] brings {packages} packages, more than {MOST.get(extra, MOST['all'])}")
    return packages


def check_guide(wheel: Path, page: str) -> str:
    """Load the first program of a guide where nothing is installed but what the guide asks for."""
    _, _, ours, *others = shlex.split(lines(page)[0])
    with installed(ours.replace("windlass", str(wheel), 1), *others) as folder:
        (folder / "shop.py").write_text(blocks(page, "python")[0].text, encoding="utf-8")
        run(_python(folder), "-W", "error", "-c", "import shop", cwd=folder)
        return f"{count_packages(folder)} packages"


def check_tree() -> str:
    """Refuse what is not committed."""
    if shutil.which("git") is None:
        return "by hand: git is not installed"
    changed = run("git", "status", "--porcelain").strip()
    if changed:
        raise NotReady(f"not committed:\n{changed}")
    return run("git", "log", "-1", "--format=%h %s").strip()


def check_version() -> str:
    """Refuse a version of development, and a changelog without it."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if re.search(r"dev|a\d|rc\d", __version__):
        raise NotReady(f"{__version__} is a version of development: set __version__ in src/windlass/__init__.py")
    if not re.search(rf"^## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        raise NotReady(f"CHANGELOG.md has no section `## [{__version__}] - YYYY-MM-DD`")
    return __version__


def check_classifiers() -> str:
    """Refuse a list of Pythons that the command for them does not run."""
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(_project()["classifiers"]), re.MULTILINE)
    if named != list(dev.PYTHONS):
        raise NotReady(f"the classifiers name {named}, dev.py runs {dev.PYTHONS}")
    return ", ".join(named)


def check_urls(project: Mapping[str, Any]) -> str:
    """Refuse a page of the package that leads nowhere; the addresses are written once the repository has one."""
    missing = [name for name in URLS if not str(project.get("urls", {}).get(name, "")).startswith("https://")]
    if missing:
        raise NotReady(f"pyproject.toml: [project.urls] has no https:// address for {', '.join(missing)}")
    return ", ".join(project["urls"])


def check_lowest(wheel: Path) -> str:
    """Use Windlass with the lowest version of everything it names, and run a store's and a worker's tests with them."""
    lowest = ("--resolution", "lowest-direct")
    packages = try_wheel(wheel, "all,django", *lowest)
    tools = [each for each in _pyproject()["dependency-groups"]["dev"] if re.split(r"[^\w-]", each)[0] in dev.SHORT_TOOLS]
    with installed(f"{wheel}[all,django]", *lowest) as folder:
        # What is installed stays, as far as the tools can do with it.
        run(dev.UV, "pip", "install", "--quiet", "--python", _python(folder), *tools)
        run(_python(folder), "-m", "pytest", "-q", "-p", "no:cacheprovider", *LOWEST)
    return f"{packages} packages"


def check_everything() -> str:
    """Count what `windlass[all]` would bring today, without installing it."""
    options = ("--extra", "all", "--quiet", "--no-annotate", "--no-header", "--python", dev.PYTHON)
    # Windlass itself is one of them.
    packages = len(run(dev.UV, "pip", "compile", *options, "pyproject.toml").splitlines()) + 1
    if packages > MOST["all"]:
        raise NotReady(f"windlass[all] brings {packages} packages, more than {MOST['all']}")
    return f"{packages} packages"


def steps(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """List what is tried, in order."""
    made: list[Built] = []

    def built() -> str:
        made.append(build(folder))
        return f"{made[0].wheel.name}, {made[0].wheel.stat().st_size / 1e6:.1f} MB"

    def wheel() -> Path:
        if not made:
            raise NotReady("nothing was built")
        return made[0].wheel

    yield "everything is committed", check_tree
    yield "the version is one, and the changelog has it", check_version
    yield "the classifiers are the Pythons that are tested", check_classifiers
    yield "the package's page leads to its source", lambda: check_urls(_project())
    yield "wheel and source archive are built and read by twine", built
    for extra in ["", *extras()]:
        name = f"windlass[{extra}]" if extra else "windlass"
        yield f"{name} works in an empty environment", partial(_packages, wheel, extra)
    for page in GUIDES:
        yield f"{page} needs no more than it installs", partial(_guide, wheel, page)
    yield "it works with the lowest versions it names", lambda: check_lowest(wheel())


def _packages(wheel: Callable[[], Path], extra: str) -> str:
    return f"{try_wheel(wheel(), extra)} packages"


def _guide(wheel: Callable[[], Path], page: str) -> str:
    return check_guide(wheel(), page)


BY_HAND = (
    "write [project.urls] in pyproject.toml, once the repository has an address, and that address into the links of README.md",
    "python3 dev.py check && python3 dev.py test --long",
    "python3 dev.py pythons",
    "python3 dev.py docs",
    "python3 dev.py faults --minutes 30 --database postgres",
    "git tag --sign vX.Y.Z && git push --tags",
    "uv publish dist/*",
    "set __version__ to the next X.Y.Z.dev0",
)
"""What a person does, or lets run for longer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Try everything, print what holds, and then what is left to do by hand."""
    parser = argparse.ArgumentParser(prog="dev.py release", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="publish nothing, which is all that this command can do")
    if not parser.parse_args(arguments).dry_run:
        parser.error("publishing is done by hand: say --dry-run to see what is ready and what is left to do")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, step in steps(Path(folder)):
            started = time.monotonic()
            try:
                told = step()
            except NotReady as error:
                failed += 1
                told = f"NOT READY: {error}"
            print(f"{'  ' if told.startswith('NOT') else 'ok'}  {name} ({time.monotonic() - started:.0f} s): {told}", flush=True)
    print("\nleft to do by hand:", *BY_HAND, sep="\n    ")
    print(f"\n{failed} not ready" if failed else "\nready")
    return 1 if failed else 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
