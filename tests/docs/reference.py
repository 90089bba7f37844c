"""Writes docs/reference from the code: settings, endpoints, commands, Python. `python3 dev.py docs` runs it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

import windlass
from windlass import config, packs
from windlass.cli.main import COMMANDS, main
from windlass.config import Settings, known
from windlass.core.pool import PoolSpec
from windlass.core.settings import SETTINGS, Choice
from windlass.web.route import Route
from windlass.web.routes import ROUTES

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
_WRITTEN = "This page is written from the code by `python3 dev.py docs`; a test fails when it is not up to date."

MEANINGS = {
    "database_url": "`sqlite:///path` or `postgresql://…`",
    "host": "where the server listens",
    "port": "on which port; 0 is any free one",
    "admin_token": "a bearer token that may do everything, at least 16 characters",
    "jwt_secret": "verifies web tokens (HS256), at least 32 bytes",
    "jwt_audience": "what `aud` of a web token must be",
    "jwt_issuer": "what `iss` of a web token must be",
    "worker_secret": "the shared secret of pull workers (`X-Internal-Secret`), at least 16 characters",
    "max_body_bytes": "the largest body of a request",
    "pools": "a worker's slots by lane; `*` serves every lane but `pull`",
    "lease": "how long a claim holds without renewal",
    "poll_interval": "how often to look where no wake-up came",
    "aging_interval": "how often waiting jobs gain priority",
    "retention_interval": "how often old history is deleted",
    "reclaim_interval": "how often lost leases are looked for",
    "keep_executions": "how many runs of a job stay in any case",
    "keep_days": "how long runs and finished jobs stay at least",
    "keep_dead_days": "how long dead letters stay that were dealt with",
    "prefetch": "how many jobs a pool may hold beyond its free slots",
    "fast_timeout": "how long a run in lane `fast` may take",
    "timeout": "how long a run in other lanes may take",
    "retry_base": "the wait after the first failed run",
    "retry_cap": "the longest wait between runs",
    "retry_jitter": "by which fraction waits vary",
    "breaker_threshold": "how many failures in a row open a breaker",
    "breaker_open": "how long a breaker stays open before one job tries again",
    "grace": "how long a process that stops lets its work go on",
    "accept_unknown": "whether jobs of tasks that nobody declared are taken in every lane",
    "packs": f"ready-made tasks to bring; left out, `windlass up` brings {', '.join(packs.SAFE)}, others none",
    "allow_private_addresses": "whether packs may connect to private and loopback addresses",
    "stale_days": "after how many days without a run `enqueue-stale` crawls a source again",
    "reset_crawling_after": "after how many minutes a `crawling` that was set by hand ends",
    "pull_lease": "a pull worker's lease in seconds",
    "pull_backoff_base": "a pull worker's first wait in seconds",
    "pull_backoff_cap": "a pull worker's longest wait in seconds",
    "pull_max_attempts": "how often a pulled job is tried",
}
"""What the code does not say beside the setting itself."""


@cache
def pages() -> dict[str, str]:
    """Write every page."""
    return {"settings.md": settings_page(), "endpoints.md": endpoints_page(), "cli.md": cli_page(), "python.md": python_page()}


def settings_page() -> str:
    """Write the settings, and those that may change while everything runs."""
    beside = _docstrings()
    rows = []
    for one in known():
        meaning = MEANINGS.get(one.attribute) or _sentence(beside.get(one.attribute, ""))
        assert meaning, f"say what {one.attribute} means: a docstring below it in config.py, or MEANINGS here"
        rows.append((f"`{one.variable}`", f"`{one.key}`", _default(one.attribute), meaning))
    live = [(f"`{name}`", f"`{one.default}`", _bounds(one)) for name, one in SETTINGS.items()]
    return _page(
        "Settings",
        "An argument of `Windlass(…)` beats the environment, the environment beats `windlass.toml`, and that the default.",
        "An unknown name or a bad value is an error that names it. Durations are written `30s`, `5m`, `1h30m` or as seconds.",
        "",
        *_table(("variable", "argument and `windlass.toml`", "default", "meaning"), rows),
        "",
        "`WORKER_FAST_THREADS` and `WORKER_GENERAL_THREADS` are taken for the slots of the pools `fast` and `*`. The client",
        "over HTTP reads `WINDLASS_URL` and `WINDLASS_TOKEN`.",
        "",
        "## While everything runs",
        "",
        "`windlass settings set NAME VALUE` or `PUT /api/v1/settings/NAME`: kept in the database, stronger than the environment.",
        "",
        *_table(("name", "default", "bounds"), live),
    )


def _docstrings() -> dict[str, str]:
    """Read the strings below the attributes of Settings."""
    tree = ast.parse(inspect.getsource(config))
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings"]
    found = {}
    for before, node in pairwise(body):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and is_text:
            found[before.target.id] = inspect.cleandoc(str(node.value.value))  # type: ignore[attr-defined]  # checked above
    return found


def _default(attribute: str) -> str:
    match getattr(Settings(), attribute):
        case None:
            return "—"
        case bool() as flag:
            return "`on`" if flag else "`off`"
        case timedelta() as length:
            return f"`{_length(length)}`"
        case tuple() as pools if all(isinstance(pool, PoolSpec) for pool in pools):
            return f"`{','.join(f'{pool.lane}={pool.slots}' for pool in pools)}`"
        case value:
            return f"`{value}`"


def _length(length: timedelta) -> str:
    for unit, size in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("m", timedelta(minutes=1))):
        if length >= size and not length % size:
            return f"{length // size}{unit}"
    return f"{length.total_seconds():g}s"


def _bounds(setting: Any) -> str:
    return ", ".join(setting.words) if isinstance(setting, Choice) else f"{setting.low} to {setting.high}"


def endpoints_page() -> str:
    """Write the table of routes."""
    groups: dict[str, list[Route]] = {}
    for route in ROUTES:
        groups.setdefault(route.handler.__module__, []).append(route)
    parts: list[str] = []
    for module, routes in groups.items():
        rows = [(route.method, f"`{route.path}`", route.least or "anybody", _statuses(route), _doing(route)) for route in routes]
        parts += ["", f"## {_sentence(import_module(module).__doc__ or module)}", ""]
        parts += _table(("method", "path", "least role", "answers", "does"), rows)
    return _page(
        "Endpoints",
        "Every route with the least [role](../server.md#roles) it takes. `/reference` on a running server shows parameters,",
        "bodies and answers; `/openapi.json` is the same for programs. Any route may also answer 400, 401, 403 and",
        "[the like](../server.md#errors).",
        *parts,
    )


def _statuses(route: Route) -> str:
    if route.is_page:
        return "a page"
    return ", ".join(str(status) for status in (route.status, *route.others, *route.errors))


def _doing(route: Route) -> str:
    return _sentence(inspect.getdoc(route.handler) or "")


def cli_page() -> str:
    """Write every command with its options."""
    parts: list[str] = []
    with click.Context(main, info_name="windlass") as context:
        for name in sorted(COMMANDS):
            command = main.get_command(context, name)
            assert command is not None
            parts += _command(command, click.Context(command, parent=context, info_name=name))
    return _page("Commands", "`windlass COMMAND --help` says the same. [The command line](../cli.md) has examples.", *parts)


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    path = context.command_path
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("", f"## {path}", "", f"`{path} {usage}`", "", _told(command.help or ""))
    options = [
        record for one in command.params if (record := one.get_help_record(context)) and record[1] and "--help" not in record[0]
    ]
    if options:
        yield ""
        yield from _table(("option", "meaning"), [(f"`{name}`", _told(text)) for name, text in options])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _command(below, click.Context(below, parent=context, info_name=name))


def python_page() -> str:
    """Write the public names with what each is for; the site has their signatures and members below."""
    public = sorted(name for name in dir(windlass) if name[0].isalpha() and name not in {"Any", "TYPE_CHECKING"})
    named = {name: value for name in public if not inspect.ismodule(value := getattr(windlass, name))}
    groups = {
        "Applications, tasks, jobs": [name for name, value in named.items() if not _is_error(value)],
        "Errors and signals": [name for name, value in named.items() if _is_error(value)],
    }
    parts: list[str] = []
    for heading, names in groups.items():
        rows = [(f"`{name}`", _sentence(inspect.getdoc(named[name]) or "")) for name in names]
        parts += ["", f"## {heading}", "", *_table(("name", "is"), rows)]
        parts += [f"\n::: windlass.{name}" for name in names if callable(named[name])]
    for module, names in public_modules():
        members = [f"\n::: {module}.{name}" for name in names if not _is_module(f"{module}.{name}")]
        parts += ["", f"## From `{module}`", *members] if members else []
    return _page(
        "Python",
        "What `from windlass import …` has, and the [public names of its modules](../api.md#from-its-modules). Everything",
        "else is internal and may change. On the site each name has its signature and its members. [Tasks](../tasks.md),",
        "[schedules](../schedules.md) and [testing](../testing.md) show how to use them.",
        *parts,
    )


def public_modules() -> Iterator[tuple[str, list[str]]]:
    """List the modules that docs/api.md has, each with its public names."""
    page = (FOLDER.parent / "api.md").read_text(encoding="utf-8")
    for module, names in re.findall(r"^\| `(windlass\.[\w.]+)` \| (.*?) \|", page, re.MULTILINE):
        yield module, re.findall(r"`(\w+)`", names)


def _is_module(path: str) -> bool:
    # Not imported: Django's would choose the SQLite library of this process.
    source = FOLDER.parents[1] / "src" / Path(*path.split("."))
    return source.is_dir() or source.with_suffix(".py").is_file()


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, BaseException)


def _told(text: str) -> str:
    return " ".join(inspect.cleandoc(text).split())


def _sentence(text: str) -> str:
    first = " ".join(text.partition("\n\n")[0].split())
    return first.removesuffix(".").replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *(tuple(cell.replace("\n", " ") for cell in row) for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _page(title: str, *lines: str) -> str:
    return "\n".join([f"# {title}", "", _WRITTEN, "", *lines, ""])


def write() -> None:
    """Write the pages where they belong."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"docs/reference/{name}")


if __name__ == "__main__":
    write()
