"""The nouns beside jobs on the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.crawl import Address, Holder, Visit
from windlass.core.ids import job_uuid
from windlass.core.job import Lease, NewJob
from windlass.core.known_task import DeclaredTask
from windlass.core.webpage import new_page
from windlass.core.worker import NewWorker

BOTH = pytest.mark.parametrize("url", ["sqlite-file", "postgres"], indirect=True)


def die(app: Windlass, task: str = "mail") -> int:
    [made] = app.enqueue_jobs_sync([NewJob(task=task)])
    app.bury_sync(made, "boom")
    return made.id


@BOTH
def test_dead_letters_are_listed_read_acknowledged_and_requeued(windlass: Command, ask: Any, app: Windlass) -> None:
    first, second = die(app), die(app, "other")
    listed = ask("dead", "list")
    assert ([one["job_id"] for one in listed["dead_letters"]], listed["total"]) == ([second, first], 2)
    assert "boom" in windlass("dead").stdout
    assert [one["task"] for one in ask("dead", "list", "--task", "mail", "--status", "open")["dead_letters"]] == ["mail"]
    shown = ask("dead", "show", "1")
    assert (shown["error"], shown["original_job"]["task"]) == ("boom", "mail")
    assert "boom" in windlass("dead", "show", "1").stdout
    assert (
        windlass("dead", "acknowledge", "1", "--note", "seen").stdout
        == f"windlass: dead letter 1 of job {first} is acknowledged\n"
    )
    again = windlass("dead", "acknowledge", "1", "9", code=1)
    assert ("acknowledged it before" in again.stderr, "dead letter 9 not found" in again.stderr) == (True, True)
    assert ask("dead", "requeue", "--task", "other", "--dry-run") == {"matched": 1, "changed": 0, "refused": 0, "dry_run": True}
    assert windlass("dead", "requeue", "2").stdout == f"windlass: dead letter 2 of job {second} is requeued\n"
    assert app.get_sync(second).state == "pending"
    assert "requeued before" in windlass("dead", "requeue", "2", code=1).stderr
    die(app)
    assert windlass("dead", "acknowledge", "--all").stdout.startswith("windlass: ")
    windlass("dead", "requeue", code=2)
    windlass("dead", "show", "77", code=1)


def test_a_job_without_a_correlation_id_shows_its_own_uuid_in_json(windlass: Command, ask: Any, app: Windlass) -> None:
    number = die(app)
    own = str(job_uuid(number))
    assert ask("job", str(number))["correlation_id"] == own
    assert [one["correlation_id"] for one in ask("jobs")["jobs"]] == [own]
    assert ask("dead", "show", "1")["original_job"]["correlation_id"] == own
    assert [one["original_job"]["correlation_id"] for one in ask("dead")["dead_letters"]] == [own]
    assert [one["original_job"]["correlation_id"] for one in ask("dead", "acknowledge", "1")["dead_letters"]] == [own]
    assert own in windlass("dead", "show", "1").stdout
    assert app.letters.get_sync(1).original_job["correlation_id"] == own


def test_breakers_are_opened_listed_and_reset(windlass: Command, ask: Any) -> None:
    assert ask("breakers") == {"breakers": []}
    assert "windlass breakers reset" in windlass("breakers", "open", "smtp").stdout
    assert ask("breakers", "open", "other", "--for", "10m")["state"] == "open"
    assert [(one["name"], one["state"], one["is_forced"]) for one in ask("breakers")["breakers"]] == [
        ("other", "open", True),
        ("smtp", "open", True),
    ]
    assert "smtp" in windlass("breakers", "list", "--limit", "5").stdout
    assert windlass("breakers", "reset", "smtp").stdout == "windlass: breaker smtp is closed\n"
    assert "has never left closed" in windlass("breakers", "reset", "none", code=1).stderr
    assert "did you mean other?" in windlass("breakers", "reset", "othr", code=1).stderr
    assert "for: " in windlass("breakers", "open", "x", "--for", "soon", code=2).stderr


@BOTH
def test_lanes_are_paused_resumed_and_drained(windlass: Command, ask: Any, app: Windlass) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane="slow")])
    assert windlass("lanes", "pause", "slow").stdout == "windlass: lane slow is paused\n"
    assert "as it was before" in windlass("lanes", "pause", "slow").stdout
    [lane] = ask("lanes")["lanes"]
    assert (lane["name"], lane["is_paused"], lane["counts"], lane["paused_by"].startswith("cli:")) == (
        "slow",
        True,
        {"pending": 1},
        True,
    )
    assert "slow" in windlass("lanes").stdout
    assert not ask("lanes", "resume", "slow")["is_paused"]
    assert windlass("lanes", "drain", "slow").stdout == "windlass: lane slow is paused; 0 still running\n"
    app.override_status_sync(1, app.get_sync(1).state.RUNNING, by="ann")
    assert ask("lanes", "drain", "slow", "--wait", "10ms", code=1)["running"] == 1


def test_tasks_and_workers_are_listed(windlass: Command, ask: Any, app: Windlass) -> None:
    store = run(app.blocking_store())
    run(store.tasks.declare([DeclaredTask(name=name) for name in ("a", "b")]))
    run(store.workers.register(NewWorker(id="one", host="here", pid=7, version="1", pools='{"*": 5}')))
    assert [one["name"] for one in ask("tasks", "--after", "a")["tasks"]] == ["b"]
    assert windlass("tasks", "pause", "b").stdout == "windlass: task b is paused\n"
    assert [one["is_paused"] for one in ask("tasks")["tasks"]] == [False, True]
    assert windlass("tasks").stdout.split()[0] == "name"
    [worker] = ask("workers", "--online")["workers"]
    assert (worker["id"], worker["pools"], worker["is_online"]) == ("one", {"*": 5}, True)
    assert "here" in windlass("workers").stdout
    assert "worker one claims nothing more" in windlass("workers", "pause", "one").stdout
    [worker] = ask("workers")["workers"]
    assert worker["paused_by"].startswith("cli:")
    assert windlass("workers", "resume", "one").stdout == "windlass: worker one claims jobs\n"
    assert ask("workers", "pause", "one")["paused_at"] is not None
    assert "worker 'none' not found" in windlass("workers", "pause", "none", code=1).stderr


def test_settings_are_read_set_and_unset(windlass: Command, ask: Any) -> None:
    assert windlass("settings", "get", "BACKOFF_BASE_SEC").stdout == "30\n"
    assert windlass("settings", "set", "BACKOFF_BASE_SEC", "45").stdout == "windlass: BACKOFF_BASE_SEC is 45\n"
    found = {one["name"]: one for one in ask("settings")["settings"]}
    assert (found["BACKOFF_BASE_SEC"]["value"], found["BACKOFF_BASE_SEC"]["origin"]) == (45, "database")
    assert found["BACKOFF_BASE_SEC"]["updated_by"].startswith("cli:")
    assert "BACKOFF_BASE_SEC" in windlass("settings").stdout
    assert ask("settings", "unset", "BACKOFF_BASE_SEC")["was_set"]
    assert "it was not set" in windlass("settings", "unset", "BACKOFF_BASE_SEC").stdout
    for arguments in (["set", "NOTHING", "1"], ["get", "NOTHING"], ["unset", "NOTHING"], ["set", "BACKOFF_BASE_SEC", "0"]):
        assert "Traceback" not in windlass("settings", *arguments, code=2).stderr


@BOTH
def test_schedules_are_listed_shown_with_their_next_times_and_pruned(windlass: Command, ask: Any, app: Windlass) -> None:
    store = run(app.blocking_store())
    rule = app.recurring_sync("nightly", "mail", "30 2 * * *", lane="pull", timezone="Europe/Berlin").recurrence
    old = NewJob(task="mail", name="old", recurrence=rule, declared_by="shop")
    run(store.schedules.declare([old]))
    listed = ask("schedules")
    assert ({one["name"] for one in listed["schedules"]}, listed["total"]) == ({"nightly", "old"}, 2)
    table = windlass("schedules", "list", "--task", "mail").stdout
    assert ("at 02:30 (Europe/Berlin)" in table, "shop" in table) == (True, True)
    shown = ask("schedules", "show", "nightly", "--count", "3")
    assert (len(shown["next_times"]), shown["when"]) == (3, "at 02:30 (Europe/Berlin)")
    assert "02:30:00" in windlass("schedules", "show", "nightly").stdout
    ahead = ask("schedules", "preview", "@every 90m", "--count", "2")
    assert (ahead["when"], len(ahead["next_times"])) == ("every 1 hour 30 minutes", 2)
    assert "at 03:30 (Europe/Helsinki)" in windlass("schedules", "preview", "30 3 * * *", "--timezone", "Europe/Helsinki").stdout
    assert "cadence: " in windlass("schedules", "preview", "61 * * * *", code=2).stderr
    assert "timezone: " in windlass("schedules", "preview", "@daily", "--timezone", "Mars", code=2).stderr
    assert "not found" in windlass("schedules", "show", "none", code=1).stderr
    assert windlass("schedules", "prune", "shop").stdout == "windlass: 0 disabled\n"
    assert windlass("schedules", "prune", "other", "--older-than", "0s").stdout == "windlass: 0 disabled\n"
    assert [one["name"] for one in ask("schedules", "prune", "shop", "--older-than", "0s")["schedules"]] == ["old"]
    assert app.schedules.get_sync("old").is_enabled is False
    assert app.schedules.get_sync("nightly").run_at - run(store.clock()) < timedelta(days=1, hours=2)


def test_sources_are_kept_listed_and_deleted(windlass: Command, ask: Any) -> None:
    assert windlass("sources", "set", "7", "https://example.org").stdout == "windlass: source 7 is https://example.org\n"
    assert ask("sources", "set", "7", "https://example.org/new", "--name", "Seven")["name"] == "Seven"
    assert [(one["id"], one["url"]) for one in ask("sources")["sources"]] == [("7", "https://example.org/new")]
    assert "Seven" in windlass("sources").stdout
    assert "url" in windlass("sources", "set", "8", "ftp://example.org", code=2).stderr
    assert windlass("sources", "delete", "7").stdout == "windlass: source 7 is deleted\n"
    windlass("sources", "delete", "7", code=1)


def test_pages_are_listed_found_shown_and_deleted(windlass: Command, ask: Any, app: Windlass) -> None:
    assert ask("pages") == {"pages": []}
    job = app.enqueue_sync("crawl", {}, lane="pull")
    run(_crawled(app, job.id))
    assert [one["title"] for one in ask("pages", "search", "LIFT", "anch*")["pages"]] == ["The windlass"]
    assert ask("pages", "search", '"', "--source-id", "ship") == {"pages": []}
    assert "The windlass" in windlass("pages", "list", "--source-id", "ship").stdout
    assert (ask("pages", "show", "1")["text"], "not found" in windlass("pages", "show", "9", code=1).stderr) == (
        "lift anchor",
        True,
    )
    assert windlass("pages", "delete", "ship").stdout == "windlass: 1 pages of ship are deleted\n"
    windlass("pages", "search", code=2)


async def _crawled(app: Windlass, job_id: int) -> None:
    store = await app.blocking_store()
    [held] = await store.claim(await store.slices(), 1, Lease(7, "w", timedelta(seconds=60)), started=True)
    holder = Holder(job_id, held.token, "ship")
    state = await store.crawls.begin(holder, "https://e.org/")
    text = {"title": "The windlass", "text": "lift anchor", "links": (), "body": b""}
    page = new_page("https://e.org/", **text, status=200, etag=None, last_modified=None)  # type: ignore[arg-type]
    await store.crawls.record(holder, state, Visit(Address(1, page.url, 0), page.url, page=page), max_pages=1)


def test_feeds_are_subscribed_to_listed_and_left(windlass: Command, ask: Any) -> None:
    url = "https://example.org/feed.xml"
    assert windlass("feeds", "subscribe", url, "ann").stdout == f"windlass: ann subscribes to feed 1, {url}\n"
    feed = ask("feeds", "subscribe", url, "bob")
    assert (feed["id"], feed["subscribers"]) == (1, 2)
    assert not {"websub_token", "websub_secret"} & feed.keys()
    assert [one["url"] for one in ask("feeds", "list", "--subscriber", "ann")["feeds"]] == [url]
    assert url in windlass("feeds").stdout
    assert ask("feeds", "entries", "1") == {"entries": []}
    windlass("feeds", "entries", url)
    assert "subscribers left: 1" in windlass("feeds", "unsubscribe", url, "ann").stdout
    assert ask("feeds", "unsubscribe", "1", "bob")["next_fetch_at"] is None
    windlass("feeds", "unsubscribe", "7", "bob", code=1)
    windlass("feeds", "subscribe", "ftp://example.org", "ann", code=2)


@BOTH
def test_views_are_made_and_dropped(windlass: Command, app: Windlass) -> None:
    made = windlass("views", "install").stdout
    assert made == windlass("views", "install").stdout
    assert made.startswith("windlass: made the views jobs, job_queue_health, dead_letter_jobs")
    assert windlass("views", "remove").stdout.startswith("windlass: dropped the views jobs, ")
    assert windlass("views", "remove").stdout == "windlass: there are no views of ours\n"
    assert app.counts_sync() == []
