"""Reminders: each due row becomes one mail, whoever dies meanwhile; and the tasks that clean up."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.packs.notify_apps import SENDER
from tests.support.local_mail import mail_server
from tests.support.stores import fresh_url
from windlass import Windlass, packs
from windlass.core.job import JobState
from windlass.core.reminder import NewReminder
from windlass.packs.notify import cleanup, reminders
from windlass.store.nouns import Reminders
from windlass.testing import run_all

DIES = """
import os, signal, sys
from windlass import Windlass
from windlass.packs.notify.reminders import mail_maker
from windlass.store.calls import reminders, work
from windlass.store.calls.call import Call
import asyncio

real = work.enqueue

class Doomed:
    @staticmethod
    def enqueue(jobs):
        def steps(means):
            yield from real(jobs).steps(means)
            os.kill(os.getpid(), signal.SIGKILL)
        return Call(steps)

reminders.work = Doomed

async def main():
    async with Windlass(sys.argv[1]) as app:
        await (await app.store()).reminders.enqueue_due(mail_maker())

asyncio.run(main())
"""


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


def notifying(url: str, **settings: Any) -> Windlass:
    app = Windlass(url, mail_from=SENDER, **settings)
    packs.install(app, ["notify"])
    return app


async def remind(app: Windlass, *whats: str, days: float = -1) -> None:
    due_at = await (await app.store()).clock() + timedelta(days=days)
    for what in whats:
        mail = {"to": "ada@example.org", "template": "reminder", "data": {"what": what}}
        await app.reminders.add(NewReminder(due_at, mail))


async def mails_of(app: Windlass) -> list[str]:
    jobs = (await app.list()).jobs
    return sorted(job.payload["data"]["what"] for job in jobs if job.task == "email")


async def test_what_is_due_is_mailed_once_and_the_rest_waits(url: str) -> None:
    async with mail_server() as box, notifying(url, smtp_url=box.url) as app:
        await remind(app, "rent", "taxes")
        await remind(app, "birthday", days=1)
        await app.enqueue("produce-reminders")
        await app.enqueue("produce-reminders")
        runs = await run_all(app)
        produced = [run.result for run in runs if run.task == "produce-reminders"]
        assert produced == [{"enqueued": 2}, {"enqueued": 0}]
        assert sorted(mail["Subject"] for mail in box.mails) == ["Reminder: rent", "Reminder: taxes"]
        [mail, *_] = [job for job in (await app.list()).jobs if job.task == "email"]
        assert (mail.lane, mail.created_by, mail.state) == ("fast", "produce-reminders", JobState.COMPLETED)
        assert mail.parent_id is not None


async def test_a_reminder_that_cannot_be_sent_holds_up_no_other(url: str) -> None:
    async with mail_server() as box, notifying(url, smtp_url=box.url) as app:
        await app.reminders.add(NewReminder(await (await app.store()).clock(), {"to": "nobody"}))
        await remind(app, "rent")
        await app.enqueue("produce-reminders")
        await run_all(app)
        assert [mail["Subject"] for mail in box.mails] == ["Reminder: rent"]
        [dead] = [job for job in (await app.list()).jobs if job.state is JobState.FAILED]
        assert "nobody" in (dead.last_error or "")


async def test_many_reminders_are_taken_in_small_transactions(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    enqueue_due = Reminders.enqueue_due

    async def noted(self: Reminders, *arguments: Any, **options: Any) -> Any:
        batch = await enqueue_due(self, *arguments, **options)
        taken.append(len(batch))
        return batch

    monkeypatch.setattr(Reminders, "enqueue_due", noted)
    async with notifying(url) as app:
        await remind(app, *(f"thing {place:02}" for place in range(60)))
        await app.enqueue("produce-reminders")
        run = (await run_all(app))[0]
        assert (run.result, taken) == ({"enqueued": 60}, [50, 10, 0])


async def test_producers_that_race_share_the_reminders(url: str) -> None:
    whats = [f"thing {place:02}" for place in range(40)]
    async with notifying(url) as one, Windlass(url) as other:
        await remind(one, *whats)
        stores = [await one.store(), await other.store()] * 4
        rounds = await asyncio.gather(*(store.reminders.enqueue_due(reminders.mail_maker(), limit=15) for store in stores))
        assert sum(map(len, rounds)) + len(await stores[0].reminders.enqueue_due(reminders.mail_maker())) == 40
        assert await mails_of(one) == whats


async def test_a_producer_that_is_killed_between_its_writes_sends_and_loses_nothing(url: str) -> None:
    async with notifying(url) as app:
        await remind(app, "rent", "taxes")
        killed = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", DIES, url], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert await mails_of(app) == []
        assert len(await (await app.store()).reminders.enqueue_due(reminders.mail_maker())) == 2
        assert await mails_of(app) == ["rent", "taxes"]


async def test_old_history_goes_and_what_waits_stays(url: str) -> None:
    async with notifying(url, keep_days="0") as app:
        await remind(app, "rent")
        await remind(app, "birthday", days=1)
        store = await app.store()
        await store.reminders.enqueue_due(reminders.mail_maker())
        done = await app.enqueue("produce-reminders")
        await run_all(app)
        await asyncio.sleep(0.002)
        await app.enqueue("cleanup-jobs")
        [run] = await run_all(app)
        assert run.result == {"executions": 0, "jobs": 1, "letters": 0, "reminders": 1}
        assert done.id not in {job.id for job in (await app.list()).jobs}
        [kept] = await app.reminders.list()
        assert kept.enqueued_at is None


async def test_the_daily_tasks_are_scheduled_by_a_worker(url: str) -> None:
    app = notifying(url)
    async with app, app.working():
        for name in (cleanup.TASK, reminders.TASK):
            schedule = await app.schedules.get(name)
            assert schedule is not None
            assert (schedule.task, schedule.lane) == (name, "fast")
