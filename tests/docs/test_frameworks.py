"""docs/fastapi.md, docs/flask.md and docs/sqlalchemy.md do what they say: their files, their commands, real HTTP."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.docs.blocks import FRAGMENT, ROOT, blocks, lines
from tests.support.stores import fresh_postgres
from windlass.store.sqlite_library import sqlite_driver

CLUB = "club.py"
"""The file of docs/flask.md that has Flask-SQLAlchemy."""
PAGES = ("docs/fastapi.md", "docs/flask.md")
_LONGEST_S = 60.0


class Shop:
    """The shop of a page in a folder of its own, on a database with its table."""

    def __init__(self, page: str, folder: Path, url: str) -> None:
        self.page, self.folder, self.url = page, folder, url
        engine_url = url.replace("postgresql:", "postgresql+psycopg:", 1)
        text = blocks(page, "python")[0].text
        assert '"sqlite:///shop.db"' in text
        (folder / "shop.py").write_text(text.replace('"sqlite:///shop.db"', repr(engine_url)), encoding="utf-8")
        [table] = re.findall(
            r"^The table is yours: `(create table .*)`\.$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
        )
        self.execute(table)

    def execute(self, statement: str) -> list[str]:
        """Run a statement, with the SQLite library that this process uses."""
        connect: Any = psycopg.connect if self.url.startswith("postgresql:") else sqlite_driver.connect
        with closing(connect(self.url.replace("sqlite:///shop.db", str(self.folder / "shop.db")))) as connection:
            cursor = connection.execute(statement)
            found = [] if cursor.description is None else [row[0] for row in cursor.fetchall()]
            connection.commit()
        return found

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "FLASK_"))}
        return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def typed(self, line: str) -> list[str]:
        """Make what a reader types a command of this environment."""
        program, *arguments = shlex.split(line)
        return [sys.executable, "-m", program, *arguments]

    def run(self, line: str) -> str:
        done = subprocess.run(
            self.typed(line),
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, line: str, ready: str) -> Iterator[str]:
        """Run a command that lasts, until the block ends; gives what it printed where `ready` was found."""
        told = self.folder / f"{abs(hash(line))}.log"
        with told.open("w") as output:
            process = subprocess.Popen(
                self.typed(line), cwd=self.folder, env=self.environment, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                yield self._wait_for(ready, told, process)
                process.send_signal(signal.SIGINT)
                process.wait(timeout=_LONGEST_S)
            finally:
                process.kill()
                process.wait()

    def _wait_for(self, ready: str, told: Path, process: subprocess.Popen[bytes]) -> str:
        until = time.monotonic() + _LONGEST_S
        while (found := re.search(ready, told.read_text())) is None:
            assert process.poll() is None, told.read_text()
            assert time.monotonic() < until, told.read_text()
            time.sleep(0.02)
        return found[1]


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield "sqlite:///shop.db"
        return
    with fresh_postgres(request.getfixturevalue("postgres_server")) as dsn:
        yield dsn


@pytest.fixture
def shop(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Shop:
    return Shop(request.param, tmp_path, database_url)


@pytest.mark.parametrize("page", PAGES)
def test_the_guide_asks_for_less_than_thirty_lines(page: str) -> None:
    written = [line for line in blocks(page, "python")[0].text.splitlines() if line.strip() and not line.startswith("#")]
    assert len(written) < 30


@pytest.mark.parametrize("shop", ["docs/fastapi.md"], indirect=True)
def test_a_fastapi_application_adopts_it_by_the_guide(shop: Shop) -> None:
    install, serve = lines(shop.page)
    assert install.startswith("pip install 'windlass[server,postgres]'")
    with shop.running(f"{serve} --port 0", r"running on (http://\S+)") as address, httpx2.Client(base_url=address) as client:
        kept = client.post("/customers", params={"email": "ann@example.org"})
        refused = client.post("/customers", params={"email": "bob@example.invalid"})
        assert (kept.status_code, refused.status_code) == (200, 422)
        job = kept.json()["job"]
        _until(lambda: client.get(f"/jobs/{job}").json() == {"state": "completed"})
        # Rolled back, it never was: not even its number is another job's.
        assert client.get(f"/ops/jobs/{job}").headers["location"] == f"/ops/login?next=/ops/jobs/{job}"
    assert shop.execute("select email from customers") == ["ann@example.org"]
    assert shop.execute("select task || ' ' || state from windlass_jobs") == ["welcome completed"]


@pytest.mark.parametrize("shop", ["docs/flask.md"], indirect=True)
def test_a_flask_application_adopts_it_by_the_guide(shop: Shop) -> None:
    install, migrate, worker, serve = lines(shop.page)
    assert install.startswith("pip install 'windlass[server,postgres]'")
    shop.run(migrate)
    with (
        shop.running(f"{worker} --pools '*=2'", r"(worker and upkeep)"),
        shop.running(f"{serve} --port 0", r"Running on (http://\S+)") as address,
        httpx2.Client(base_url=address) as client,
    ):
        kept = client.post("/customers", data={"email": "ann@example.org"})
        refused = client.post("/customers", data={"email": "bob@example.invalid"})
        assert (kept.status_code, refused.status_code) == (200, 422)
        done = "select true from windlass_jobs where state = 'completed'"
        _until(lambda: shop.execute(done))
        assert "shop@example.org welcomes ann@example.org" in shop.run(f"flask --app shop windlass job {kept.json()['job']}")
    assert shop.execute("select email from customers") == ["ann@example.org"]
    assert shop.execute("select task || ' ' || state from windlass_jobs") == ["welcome completed"]


def test_flask_sqlalchemy_shares_its_session(database_url: str, tmp_path: Path) -> None:
    [club] = [block for block in blocks("docs/flask.md", "python") if block.mark == CLUB]
    url = database_url.replace("postgresql:", "postgresql+psycopg:", 1)
    assert '"sqlite:///club.db"' in club.text
    text = club.text.replace('"sqlite:///club.db"', repr(url.replace("///shop.db", f"///{tmp_path / 'club.db'}")))
    (tmp_path / CLUB).write_text(text, encoding="utf-8")
    code = """
from club import app, db, jobs
from windlass.testing import run_all_sync
with app.app_context():
    db.create_all()
    in_use = db.engine.pool.checkedout
jobs.migrate()
asked = app.test_client()
print([asked.post("/members", data={"email": email}).status_code for email in ("ann@example.org", "bob@example.invalid")])
print([job.task for job in jobs.list_sync().jobs])
[ran] = run_all_sync(jobs)
print(ran.result, in_use())
"""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "FLASK_"))}
    typed = [sys.executable, "-c", code]
    done = subprocess.run(typed, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["[200, 422]", "['count_members']", "1 0"], done.stderr


def test_the_command_of_flask_moves_between_two_databases(tmp_path: Path) -> None:
    shop = Shop("docs/flask.md", tmp_path, "sqlite:///shop.db")
    shop.run("flask --app shop windlass migrate")
    assert "rows are there" in shop.run("flask --app shop windlass move sqlite:///shop.db sqlite:///other.db")


def _until(holds: Callable[[], object]) -> None:
    until = time.monotonic() + _LONGEST_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("page", ["docs/fastapi.md", "docs/flask.md", "docs/sqlalchemy.md"])
def test_the_python_of_the_page_runs(page: str, tmp_path: Path) -> None:
    source = "\n".join(block.text for block in blocks(page, "python") if block.mark not in {FRAGMENT, CLUB})
    (tmp_path / "shop.py").write_text(source, encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    typed = [sys.executable, "-W", "error", "shop.py"]
    done = subprocess.run(typed, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
