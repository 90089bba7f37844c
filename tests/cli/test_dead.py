"""The dead-letter desk on the command line."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.test_nouns import BOTH, die
from windlass import Windlass
from windlass.core.blocking import run
from windlass.core.job import Lease


@BOTH
def test_a_letter_is_edited_and_noted(windlass: Command, ask: Any, app: Windlass) -> None:
    job = die(app)
    answer = windlass("dead", "edit", "1", "--payload", '{"to": "bob"}').stdout
    assert answer == f"windlass: job {job} will come back with the new payload: windlass dead requeue 1\n"
    assert windlass("dead", "note", "1", "see ticket 7").stdout == "windlass: dead letter 1 has 1 note\n"
    shown = ask("dead", "show", "1")
    assert (shown["edited_payload"], shown["original_job"]["payload"]) == ({"to": "bob"}, {})
    assert shown["notes"][0]["text"] == "see ticket 7"
    page = windlass("dead", "show", "1").stdout
    assert "see ticket 7" in page
    assert '{"to":"bob"}' in page
    windlass("dead", "requeue", "1")
    assert app.get_sync(job).payload_json == '{"to":"bob"}'
    assert "it was requeued before" in windlass("dead", "edit", "1", "--payload", "{}", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        (("edit", "1", "--payload", "[1]"), (2, "payload: must be a JSON object")),
        (("edit", "1", "--payload", "{"), (2, "payload: ")),
        (("edit", "9", "--payload", "{}"), (1, "dead letter 9 not found")),
        (("note", "1", ""), (2, "text: must be a text of 1 to 2000 characters")),
        (("note", "1", "x" * 2001), (2, "text: must be a text of 1 to 2000 characters")),
        (("note", "9", "x"), (1, "dead letter 9 not found")),
        (("requeue", "--fingerprint", "nope"), (1, "no dead letter has the fingerprint 'nope'; `windlass dead groups` lists")),
        (("canaries", "start", "--fingerprint", "nope"), (1, "no dead letter has the fingerprint 'nope'")),
        (("canaries", "start", "--all", "--size", "101"), (2, "size: must be a whole number between 1 and 100")),
        (("canaries", "start", "--all", "--size", "0"), (2, "size: must be a whole number between 1 and 100")),
        (("canaries", "start"), (2, "Name a --fingerprint or a --task")),
        (("canaries", "show", "9"), (1, "canary 9 not found; `windlass dead canaries` lists")),
        (("canaries", "cancel", "9"), (1, "canary 9 not found")),
    ],
)
def test_bad_input_is_named(windlass: Command, app: Windlass, arguments: tuple[str, ...], refusal: tuple[int, str]) -> None:
    die(app)
    assert refusal[1] in windlass("dead", *arguments, code=refusal[0]).stderr


@BOTH
def test_groups_are_counted_and_requeued_by_their_fingerprint(windlass: Command, ask: Any, app: Windlass) -> None:
    first = [die(app), die(app)]
    die(app, "other")
    found = ask("dead", "groups", "--open")
    assert [(one["task"], one["letters"], one["in_hour"], one["is_new"]) for one in found["groups"]] == [
        ("other", 1, 1, False),
        ("mail", 2, 2, False),
    ]
    assert found["counts"] == {"hour": 3, "day": 3, "week": 3, "open": 3, "is_exact": True}
    assert "in all 3 within 1 h, 3 within 24 h, 3 within 7 d; 3 open" in windlass("dead", "groups").stdout
    assert ask("dead", "groups", "--new")["groups"] == []
    mark = found["groups"][1]["fingerprint"]
    assert ask("dead", "requeue", "--fingerprint", mark, "--dry-run")["matched"] == 2
    assert windlass("dead", "requeue", "--fingerprint", mark).stdout == "windlass: 2 matched: 2 requeued, 0 refused\n"
    assert {app.get_sync(job).state for job in first} == {"pending"}


@BOTH
def test_a_canary_is_started_listed_watched_and_called_off(windlass: Command, ask: Any, app: Windlass) -> None:
    for _ in range(4):
        die(app)
    started = windlass("dead", "canaries", "start", "--task", "mail", "--size", "1").stdout
    assert started == "windlass: canary 1: trying, 0 of 1 have succeeded; follow it: windlass dead canaries watch 1\n"
    assert "canary 1 is under way" in windlass("dead", "canaries", "start", "--task", "mail", code=1).stderr
    [listed] = ask("dead", "canaries", "--active")["canaries"]
    assert (listed["state"], listed["size"], len(listed["runs"])) == ("trying", 1, 1)
    _fail_one(app)
    run(_advance(app))
    watched = windlass("dead", "canaries", "watch", "1", code=1).stdout
    assert "canary 1: stopped, 0 of 1 have succeeded, 1 letters requeued: job 1 of dead letter 1 failed again: boom" in watched
    assert ask("dead", "canaries", "show", "1")["state"] == "stopped"
    number = str(ask("dead", "canaries", "start", "--all", "--size", "2")["id"])
    assert windlass("dead", "canaries", "cancel", number).stdout == (
        f"windlass: canary {number} is cancelled; 2 letters were requeued before\n"
    )
    assert "it is cancelled" in windlass("dead", "canaries", "cancel", number, code=1).stderr
    assert windlass("dead", "canaries").stdout.count("\n") == 3


def _fail_one(app: Windlass) -> None:
    store = run(app.blocking_store())
    [held] = run(store.claim(run(store.slices()), 1, Lease(7, "w", timedelta(seconds=20)), started=True))
    run(store.fail([held.id], "boom", will_retry=False))


async def _advance(app: Windlass) -> None:
    await (await app.blocking_store()).canaries.advance_all()
