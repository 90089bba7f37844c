"""`windlass serve` and `windlass token`, as typed."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.support.postgres_server import PostgresServer
from windlass import Windlass
from windlass.core.filter import JobFilter
from windlass.core.page import JobQuery

APP = """
from windlass import Windlass

app = Windlass()
"""


JOBS = """
import asyncio
from pathlib import Path

from windlass import Windlass

app = Windlass()


@app.task
async def work(seconds: float = 0.0) -> str:
    Path("started").touch()
    await asyncio.sleep(seconds)
    return "done"


@app.task(isolation="process")
def alone() -> str:
    return "done alone"
"""


def windlass(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "windlass", *arguments]
    return subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False
    )


@contextmanager
def serving(
    folder: Path, *arguments: str, command: str = "serve", **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server on a free port, and give it with what it said."""
    typed = [sys.executable, "-m", "windlass", command, "--port", "0", *arguments]
    process = subprocess.Popen(
        typed, cwd=folder, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = ""
    try:
        for told in process.stdout:
            said += told
            if "try:" in told:
                break
        yield process, said
    finally:
        process.kill()
        process.communicate()


def test_the_first_start_says_how_to_get_in_and_a_signal_ends_it(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(APP, encoding="utf-8")
    with serving(tmp_path, "jobs:app") as (process, said):
        [token] = set(re.findall(r"wdl_[\w-]+", said))
        [link] = re.findall(r"http://\S+/login\?code=\S+", said)
        url = link.partition("/login")[0]
        with httpx2.Client(base_url=url, timeout=30) as client:
            assert client.get("/readyz").status_code == 200
            assert client.get("/api/v1/lanes").status_code == 401
            assert client.get("/api/v1/tokens", headers={"authorization": f"Bearer {token}"}).json()["total"] == 1
            assert client.get(link).status_code == 200
            assert client.get("/api/v1/session").json()["role"] == "admin"
            assert client.get(link).status_code == 403
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, ""), err
        assert token not in err
    with serving(tmp_path) as (_, said):
        assert "shown this once" not in said
        assert "/login?code=" in said


def test_it_does_not_listen_to_others_without_credentials(tmp_path: Path) -> None:
    done = windlass(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, "WINDLASS_ADMIN_TOKEN" in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("name", "value"), [("WINDLASS_JWT_SECRET", "short"), ("WINDLASS_JWT_PUBLIC_KEY", "absent.pem")])
def test_a_credential_that_cannot_be_used_is_named_but_not_shown(tmp_path: Path, name: str, value: str) -> None:
    done = windlass(tmp_path, "serve", "--port", "0", **{name: value})
    assert (done.returncode, name.removeprefix("WINDLASS_").lower() in done.stderr.lower()) == (2, True), done.stderr
    assert "short" not in done.stderr


@pytest.fixture
def empty_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = "windlass_unserved"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


def test_postgres_asks_for_its_tables_unless_told_to_make_them(tmp_path: Path, empty_url: str) -> None:
    refused = windlass(tmp_path, "serve", "--port", "0", "--database", empty_url)
    assert (refused.returncode, "windlass migrate" in refused.stderr) == (2, True), refused.stderr
    with serving(tmp_path, "--database", empty_url, "--migrate") as (_, said):
        assert "listening on" in said


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    made = windlass(tmp_path, "token", "new", "ci", "--role", "worker", "--lane", "pull", "--expires", "90d", "--json")
    token = json.loads(made.stdout)
    assert (token["role"], token["lanes"], token["secret"][:4]) == ("worker", ["pull"], "wdl_")
    plain = windlass(tmp_path, "token", "new", "ops", "--role", "operator")
    assert re.fullmatch(r"wdl_[\w-]+\n", plain.stdout)
    listed = json.loads(windlass(tmp_path, "token", "list", "--json").stdout)
    assert ([one["name"] for one in listed["tokens"]], listed["total"]) == (["ci", "ops"], 2)
    assert "secret" not in str(listed)
    assert "digest" not in str(listed)
    revoked = windlass(tmp_path, "token", "revoke", str(token["id"]))
    assert (revoked.returncode, "is revoked" in revoked.stdout) == (0, True)
    table = windlass(tmp_path, "token", "list").stdout
    assert re.search(r"ci +worker +revoked +never +pull", table)
    assert windlass(tmp_path, "token", "revoke", "99").returncode == 1
    assert windlass(tmp_path, "token", "new", "x", "--role", "root").returncode == 2
    bad = windlass(tmp_path, "token", "new", "x", "--role", "viewer", "--expires", "soon")
    assert (bad.returncode, "expires" in bad.stderr, "Traceback" in bad.stderr) == (2, True, False)


def test_up_serves_works_and_finishes_what_runs_when_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS, encoding="utf-8")
    url = f"sqlite:///{tmp_path / 'some.db'}"
    with serving(tmp_path, "jobs:app", "--database", url, command="up") as (process, said):
        assert tasks_of(said) == ["alone", "work"]
        [address] = re.findall(r"listening on (\S+)", said)
        with Windlass(url) as app:
            quick = app.enqueue_sync("work")
            alone = app.enqueue_sync("alone")
            assert app.wait_sync(quick, timeout=30) == "done"
            assert app.wait_sync(alone, timeout=30) == "done alone"
            assert httpx2.get(f"{address}/readyz").status_code == 200
            (tmp_path / "started").unlink()
            long = app.enqueue_sync("work", {"seconds": 1.5})
            await_file(tmp_path / "started")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            assert (process.returncode, out) == (0, ""), err
            assert app.wait_sync(long, timeout=1) == "done"


def test_up_needs_no_application_and_its_curl_line_makes_a_job_run(tmp_path: Path) -> None:
    with serving(tmp_path, command="up") as (process, said):
        assert "database     windlass.db (SQLite)" in said
        known = {
            "hello",
            "crawl",
            "fetch_feed",
            "enqueue-stale",
            "email",
            "webhook",
            "integration",
            "cleanup-jobs",
            "produce-reminders",
        }
        # The line has room for some of them.
        assert re.fullmatch(r"[\w-]+ and \d+ more", tasks_of(said)[-1])
        with Windlass(f"sqlite:///{tmp_path / 'windlass.db'}") as app:
            assert known <= {task.name for task in app.known_tasks.list_sync()}
            answer = subprocess.run(shlex.split(curl_of(said)), capture_output=True, text=True, timeout=30, check=True).stdout
            job = json.loads(answer)["number"]
            assert app.wait_sync(job, timeout=30) == "Hello, world!"
            [run] = app.executions_sync(job)
            assert run.status == "completed"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def test_the_demo_shows_everything_by_itself_and_keeps_out_of_other_jobs(tmp_path: Path) -> None:
    with serving(tmp_path, "--demo", command="up") as (process, said):
        began = time.monotonic()
        assert "sample jobs (demo)" in said
        assert "database     windlass-demo.db (SQLite)" in said
        assert not (tmp_path / "windlass.db").exists()
        with Windlass(f"sqlite:///{tmp_path / 'windlass-demo.db'}") as app:
            missing = set(shown(app))
            while missing := missing - {name for name, is_shown in shown(app).items() if is_shown}:
                # It takes 20 seconds; a machine that is busy with other tests may take longer.
                assert time.monotonic() - began < 90, missing
                time.sleep(0.2)
        print(f"the demo showed everything after {time.monotonic() - began:.0f} s")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def shown(app: Windlass) -> dict[str, bool]:
    """Return what a demo should show, and whether it does at this moment."""
    counts = [(one.task, one.state) for one in app.counts_sync()]
    return {
        "several tasks": len({task for task, state in counts if state == "completed"}) >= 4,
        "a dead letter": app.letters.counts_sync().hour > 0,
        "a recurring job": ("demo-hourly", "scheduled") in counts,
        "an open breaker": any(one.state == "open" for one in app.breakers.list_sync()),
        "progress": any(job.progress_count for job in app.list_sync().jobs if job.task == "demo-report"),
        "an alert": any(one.alert.rule == "breaker" for one in app.alerts.board_sync().open),
        "a tree": len(app.list_sync(JobQuery(filter=JobFilter(correlation_id="demo-3"))).jobs) >= 5,
        "items": app.items.count_sync("demo-report").items > 0,
    }


def test_the_demo_takes_no_application(tmp_path: Path) -> None:
    done = windlass(tmp_path, "up", "--demo", "jobs:app")
    assert (done.returncode, "MODULE:APP" in done.stderr) == (2, True), done.stderr


def tasks_of(said: str) -> list[str]:
    line: str
    [line] = re.findall(r"^ +tasks +(.*)$", said, re.MULTILINE)
    return line.split(", ")


def curl_of(said: str) -> str:
    line: str
    [line] = re.findall(r"^ +try: (curl .*)$", said, re.MULTILINE)
    return line.replace("curl ", "curl -sS ", 1)


def await_file(path: Path) -> None:
    late = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < late, f"{path} never came"
        time.sleep(0.02)
