"""`windlass worker --metrics-port`: what Prometheus reads where no server runs."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.cli.test_running_commands import Running, client, running
from tests.support.prometheus import read_openmetrics, sample
from windlass.core.job import JobState, NewJob
from windlass.store.sqlite_library import sqlite_driver as driver

TOKEN = "only-for-prometheus-1"


def address(worker: Running) -> str:
    worker.await_words("/metrics")
    return str(re.findall(r"http://\S+/metrics", worker.printed)[0])


def scrape(url: str, **headers: str) -> str:
    request = urllib.request.Request(url, headers={"accept": "application/openmetrics-text", **headers})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def refusal(url: str, **headers: str) -> int:
    with pytest.raises(urllib.error.HTTPError) as refused:
        scrape(url, **headers)
    with refused.value:
        return refused.value.code


def test_a_worker_without_a_server_answers_once_for_all_its_processes(tmp_path: Path) -> None:
    with running(tmp_path, "worker", "jobs:app", "--metrics-port", "0", "--processes", "2") as worker:
        url = address(worker)
        assert url.startswith("http://127.0.0.1:")
        with client(tmp_path) as app:
            assert app.wait_sync(app.enqueue_sync("add", {"a": 1, "b": 2}), timeout=30) == 3
        found = read_openmetrics(scrape(url))
        assert sample(found, "windlass_runs_total", task="add", status="completed") == 1
        assert sample(found, "windlass_jobs", task="add", state="completed") == 1
        late = time.monotonic() + 20
        while sample(read_openmetrics(scrape(url)), "windlass_workers") < 2:
            assert time.monotonic() < late
            time.sleep(0.2)
        assert refusal(url.replace("/metrics", "/odd")) == 404
        assert refusal(url, host="evil.example:80") == 401
        worker.stop()


def test_metrics_equal_a_recount_after_a_worker_was_killed(tmp_path: Path) -> None:
    jobs = 3000
    with client(tmp_path) as app:
        app.enqueue_jobs_sync([NewJob(task="add", payload='{"a":1,"b":2}') for _ in range(jobs)])
        with running(tmp_path, "worker", "jobs:app", "--metrics-port", "0", WINDLASS_LEASE_SECONDS="2") as worker:
            url = address(worker)
            await_sample(url, "windlass_runs_total", 50, task="add", status="completed")
            [killed] = children(worker.process.pid)
            os.kill(killed, signal.SIGKILL)
            await_sample(url, "windlass_jobs", jobs, task="add", state="completed")
            found = read_openmetrics(scrape(url))
            worker.stop()
    with closing(driver.connect(str(tmp_path / "windlass.db"))) as connection:
        states = dict(connection.execute("select state, count(*) from windlass_jobs where task = 'add' group by 1").fetchall())
        runs = connection.execute(
            "select status, coalesce(reason, ''), count(*) from windlass_executions group by 1, 2"
        ).fetchall()
    for state in JobState:
        assert sample(found, "windlass_jobs", task="add", state=state) == states.get(state, 0)
    for status, reason, number in runs:
        assert sample(found, "windlass_runs_total", task="add", status=status, reason=reason) == number
    lost = sum(number for _, reason, number in runs if reason == "lease_expired")
    assert sample(found, "windlass_leases_lost_total") == lost
    counted = sum(number for _, reason, number in runs if reason not in {"released", "snoozed"})
    assert sample(found, "windlass_run_seconds_count", task="add") == counted >= jobs


def children(pid: int) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=True)
    return [int(line) for line in listed.stdout.split()]


def await_sample(url: str, name: str, least: float, **labels: str) -> None:
    late = time.monotonic() + 60
    while True:
        found = [
            one.value
            for family in read_openmetrics(scrape(url))
            for one in family.samples
            if one.name == name and labels.items() <= one.labels.items()
        ]
        if sum(found) >= least:
            return
        assert time.monotonic() < late, (name, found)
        time.sleep(0.05)


def test_the_token_of_the_settings_is_asked_for(tmp_path: Path) -> None:
    with running(tmp_path, "worker", "jobs:app", "--metrics-port", "0", WINDLASS_METRICS_TOKEN=TOKEN) as worker:
        url = address(worker)
        assert refusal(url) == 401
        assert refusal(url, authorization=f"Bearer {TOKEN}x") == 401
        assert "windlass_workers" in scrape(url, authorization=f"Bearer {TOKEN}")
        worker.stop()


def test_a_client_that_sends_nothing_holds_up_nobody_for_long(tmp_path: Path) -> None:
    with running(tmp_path, "worker", "jobs:app", "--metrics-port", "0") as worker:
        url = address(worker)
        port = int(re.findall(r":(\d+)/", url)[0])
        with socket.create_connection(("127.0.0.1", port)):
            begun = time.monotonic()
            connection = HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200
            connection.close()
            assert time.monotonic() - begun < 15
        worker.stop()


def test_what_cannot_be_had_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("from windlass import Windlass\n\napp = Windlass()\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, text in (
            (["--metrics-port", "0", "--metrics-host", "0.0.0.0"], "set WINDLASS_METRICS_TOKEN, or use 127.0.0.1"),
            (["--metrics-port", port], f"--metrics-port {port}: cannot listen on 127.0.0.1"),
            (["--metrics-port", "odd"], "--metrics-port"),
        ):
            command = [sys.executable, "-m", "windlass", "worker", "jobs:app", *arguments]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
            assert (done.returncode, text in done.stderr) == (2, True), done.stderr
