"""`windlass init`: a small project that runs."""

from __future__ import annotations

import keyword
from pathlib import Path

import click

from windlass.cli.output import say
from windlass.errors import ConfigError

_APP = '''"""The jobs of {name}."""

from windlass import Windlass

app = Windlass(name="{name}")


@app.task(max_attempts=5, timeout="30s")
async def greet(name: str) -> str:
    """Return a greeting; enqueue it with `await greet.enqueue(name="Ann")`."""
    return f"Hello, {{name}}!"


@app.task(every="1m")
async def count_jobs() -> int:
    """Run every minute: a schedule is a task with a time."""
    page = await app.list()
    return page.total
'''
_TEST = '''"""Run with `pytest`: no worker and no server is needed."""

from windlass.testing import fresh, run_all_sync

from {module} import app, greet


def test_greet() -> None:
    with fresh(app):
        greet.enqueue_sync(name="Ann")
        results = [ran.result for ran in run_all_sync(app) if ran.task == "greet"]
        assert results == ["Hello, Ann!"]
'''
_SETTINGS = """# Settings; the environment goes first, as in WINDLASS_DATABASE_URL.
# In production: database_url = "postgresql://localhost/{name}"
database_url = "sqlite:///{name}.db"
"""
_README = """# {name}

Jobs with Windlass, in `{name}.db` or in PostgreSQL.

    pip install "windlass[server]"
    windlass up {module}:app --reload           # server, worker and schedules; starts anew when a file changes
    windlass enqueue greet --arg name=Ann --app {module}:app
    windlass jobs
    windlass shell {module}:app                 # try things out
    pytest

| file | what it is |
|---|---|
| `{module}.py` | the application, a task and a schedule |
| `test_{module}.py` | a test of the task |
| `windlass.toml` | settings |
"""
_IGNORED = "*.db\n*.db-*\n__pycache__/\n"


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".")
def init(folder: Path) -> None:
    """Write a small project that runs into FOLDER: an application, a test, settings.

    Nothing is overwritten: where one of the files is there already, none is written.
    """
    name = folder.resolve().name.replace(" ", "-")
    module = _module(name)
    texts = {
        f"{module}.py": _APP,
        f"test_{module}.py": _TEST,
        "windlass.toml": _SETTINGS,
        "README.md": _README,
    }
    files = {file: text.format(name=name, module=module) for file, text in texts.items()} | {".gitignore": _IGNORED}
    if taken := sorted(file for file in files if (folder / file).exists()):
        raise ConfigError(f"{folder} has {', '.join(taken)} already; name another folder, as in `windlass init myproject`")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error
    say(f"{', '.join(files)} are written")
    enter = "" if folder == Path() else f"cd {folder} && "
    click.echo(f"  next: {enter}windlass up {module}:app --reload")


def _module(name: str) -> str:
    """Make a name that Python can import of a folder's."""
    module = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name.lower()).strip("_") or "jobs"
    is_good = module.isidentifier() and not keyword.iskeyword(module) and module != "windlass"
    return module if is_good else f"{module}_jobs" if module[0].isalpha() else f"jobs_{module}"
