"""A queue in which every page of the dashboard has something to show, made of texts that the caller chooses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from windlass import Windlass
from windlass.core.access import NewToken, Role
from windlass.core.alert_rules import RULES, read_rules
from windlass.core.audit import Actor
from windlass.core.breaker import BreakerSpec
from windlass.core.job import MAX_NAME, Job, NewJob
from windlass.core.letter_page import LetterQuery
from windlass.core.payload import encode_object
from windlass.core.worker import MAX_VERSION, NewWorker
from windlass.errors import InvalidInput, WindlassError
from windlass.worker.context import JobContext

T = TypeVar("T")
ADMIN_TOKEN = "static-admin-token"
ORDINARY = ("reports", "mail to customers", "nightly import of the catalogue with a rather long name", "x" * 150)
log = logging.getLogger("tests.browser.scene")
_MAX_NOTE = 500


@dataclass
class Scene:
    """An application whose database is filled, and what was put into which field."""

    app: Windlass
    texts: dict[str, list[str]] = field(default_factory=dict)
    """By field, what was accepted."""
    tasks: dict[str, str] = field(default_factory=dict)
    """The text that each task is made of."""
    failed: list[Job] = field(default_factory=list)

    def add(self, name: str, text: str, limit: int = MAX_NAME) -> str:
        """Mark a text with its field, so that each place where it is shown can be told from the others."""
        mark = f" {name}"
        made = text[: limit - len(mark)] + mark
        self.texts.setdefault(name, []).append(made)
        return made

    @property
    def subjects(self) -> dict[str, str]:
        """What stands for the parameter of a page's path, by the first part of the path."""
        job = self.failed[-1]
        return {
            "alerts": "pending",
            "breakers": self.texts["breaker"][-1],
            "correlations": self.texts["correlation"][-1],
            "dead": "1",
            "items": self.texts["collection"][-1],
            "jobs": str(job.id),
            "lanes": self.texts["lane"][-1],
            "recurring": str(job.id),
            "tasks": job.task,
            "workers": self.texts["worker"][-1],
        }

    @contextmanager
    def dropping(self, *names: str) -> Iterator[None]:
        """Forget the newest text of these fields when it is refused."""
        try:
            yield
        except InvalidInput:
            for name in names:
                self.texts[name].pop()


def make_scene(folder: Path, texts: Sequence[str] = ORDINARY) -> Scene:
    """Make a queue and put each text wherever a client, a worker or an operator may put one."""
    scene = _declared(folder, texts)
    run_apart(_fill(scene, texts))
    return scene


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in another thread: Playwright has a loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def _declared(folder: Path, texts: Iterable[str]) -> Scene:
    """Declare a task for each text."""
    app = Windlass(f"sqlite:///{folder / 'jobs.db'}", admin_token=ADMIN_TOKEN, accept_unknown=True)
    scene = Scene(app)
    for text in texts:
        _declare(scene, text)

    @app.task
    async def crawl() -> None:
        """Stand for the pack of that name: its page is there where its task is known."""

    @app.task
    async def fetch_feed() -> None:
        """Stand for the pack `feeds`."""

    @app.task
    async def hello(name: str = "you") -> str:
        return f"hello {name}"

    @app.task(every="1h")
    async def hourly() -> None:
        pass

    return scene


def _declare(scene: Scene, text: str) -> None:
    task, breaker = scene.add("task", text), scene.add("breaker", text)
    with scene.dropping("task", "breaker"):

        @scene.app.task(name=task, max_attempts=1, breaker=BreakerSpec(breaker, threshold=1))
        async def work(ctx: JobContext, **payload: Any) -> None:
            log.warning("%s", f"{text} log")
            await ctx.progress(count=1, cursor=f"{text[:100]} cursor", message=f"{text[:100]} message")
            await ctx.items([payload])
            await scene.app.enqueue("hello", {"name": text}, correlation_id=ctx.correlation_id, parent_id=ctx.job_id)
            raise RuntimeError(f"{text} error")

        scene.tasks[task] = text


async def _fill(scene: Scene, texts: Sequence[str]) -> None:
    """Enqueue a job for each text, let it fail, and let operators speak."""
    async with scene.app as app:
        jobs = [await _enqueue(scene, task, text) for task, text in scene.tasks.items()]
        async with app.working():
            for job in jobs:
                with suppress(WindlassError):
                    await app.wait(job, timeout=60)
        scene.failed = [await app.get(job) for job in jobs]
        for name in ("error", "log"):
            scene.texts[name] = [f"{text} {name}" for text in scene.tasks.values()]
        for text in texts:
            await _put(scene, text)
        await _raise_alerts(scene)
        letters = (await app.letters.list(LetterQuery(limit=200))).letters
        for letter, text in zip(letters, texts, strict=False):
            note = scene.add("note", text, _MAX_NOTE)
            with scene.dropping("note"):
                await app.letters.add_note(letter.id, note, by="ann")
        await app.letters.acknowledge([letters[-1].id], by="ann", note="known")


async def _enqueue(scene: Scene, task: str, text: str) -> int:
    made = await scene.app.enqueue(
        task,
        {scene.add("key", text, 1000): scene.add("value", text, 20_000)},
        metadata={scene.add("metadata", text): 1},
        subject=scene.add("subject", text, 300),
        correlation_id=scene.add("correlation", text, 300),
        description=scene.add("description", text, 300),
        collection=scene.add("collection", text),
        item_key=[],
        created_by="ann",
    )
    return made.id


async def _put(scene: Scene, text: str) -> None:
    app, store = scene.app, await scene.app.store()
    lane = scene.add("lane", text)
    with scene.dropping("lane"):
        await store.enqueue([NewJob(task="hello", lane=lane, payload=encode_object({"name": text}))])
    actor = scene.add("actor", text)
    with scene.dropping("actor"):
        await app.acting(Actor(actor)).lanes.pause(lane)
    schedule = scene.add("schedule", text)
    with scene.dropping("schedule"):
        await app.recurring(schedule, "hello", "@every 1h", description=f"{text[:200]} description")
    worker, version = scene.add("worker", text), scene.add("version", text, MAX_VERSION)
    with scene.dropping("worker", "version"):
        pools, tasks = json.dumps({text[:100]: 2}), json.dumps([text[:100]])
        about = NewWorker(id=worker, host=worker, pid=4711, version=version, app_version=version, pools=pools, tasks=tasks)
        await store.workers.register(about)
    token = scene.add("token", text, 100)
    with scene.dropping("token"):
        await store.tokens.mint(NewToken(name=token, role=Role.VIEWER))
    reason = scene.add("reason", text, _MAX_NOTE)
    with scene.dropping("reason"):
        await store.alerts.silence("pending", "1h", reason=reason, subject=lane)


async def _raise_alerts(scene: Scene) -> None:
    """Let alerts be raised, and some of them cleared again."""
    store = await scene.app.store()
    off = ";".join(f"{name}=off" for name in RULES if name not in {"pending", "depth", "breaker", "failed_rate"})
    await store.alerts.evaluate(read_rules(f"pending=0,for=0s;depth=1;{off}"))
    await store.alerts.evaluate(read_rules(f"pending=0,for=0s;depth=off;{off}"))
