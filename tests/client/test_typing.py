"""What a type checker says of right and wrong calls."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
PROGRAM = """
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from sqlalchemy import create_engine

from windlass import EndEvent, EnqueueEvent, EnqueuedJob, Enqueued, Execution, HandlerCall, Job, JobContext, Task, Windlass
from windlass.sqlalchemy import windlass_on

app = Windlass("sqlite:///jobs.db")
engine = create_engine("sqlite:///jobs.db")


@app.task(lane="fast", max_attempts=5, timeout="30s", unique=lambda to, **_: to)
async def email(ctx: JobContext, to: str, template: str = "welcome") -> int:
    return 1


@app.task
def double(number: int) -> int:
    return 2 * number


@app.task
async def bare(ctx: JobContext, number: int) -> None: ...


@app.task
async def tally(ctx: JobContext, words: dict[str, Any], most=3) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    return words


@app.task
def bare_words(words, most: int = 3) -> int:  # type: ignore[no-untyped-def]
    return len(words)


async def right_with_any(ctx: JobContext, unknown: Any) -> None:
    words: EnqueuedJob[dict[str, Any]] = await tally.enqueue({"a": 1}, most=4)
    kept: dict[str, Any] = await words.result()
    count: int = await (await bare_words.enqueue(unknown, most=4)).result()
    same: int = bare_words.enqueue_sync(["a"]).result_sync()
    await double.enqueue(unknown)
    await tally.enqueue_many([tally.call({}), {"words": {}}])
    print(kept, count, same, await ctx.enqueue(tally, {}, most=1), ctx.enqueue_sync(bare_words, "ab", most=1))
    print(await tally(ctx, {}), bare_words([]))


async def wrong_with_any(ctx: JobContext, unknown: Any) -> None:
    await tally.enqueue("a")  # error
    await tally.enqueue({}, least=4)  # error
    tally.enqueue_sync(unknown, unknown, unknown, unknown)  # error
    await bare_words.enqueue([], most="4")  # error
    await tally.enqueue_many([tally.call([])])  # error
    await tally.enqueue_many([double.call(3)])  # error
    await ctx.enqueue(tally, 3)  # error
    await ctx.enqueue(bare_words, [], most="4")  # error
    await ctx.enqueue(len, "ab")  # error
    count: int = await (await tally.enqueue({})).result()  # error
    text: str = bare_words.enqueue_sync(unknown).result_sync()  # error
    print(count, text)
    await tally({})  # error


@app.on("fail")
async def report(event: EndEvent) -> None:
    cause: BaseException | None = event.exception
    print(cause)


@app.on("enqueue")
def count(event: EnqueueEvent) -> None: ...


@app.on("start")  # error
def wrong_count(event: EnqueueEvent) -> None: ...


@app.on("finsh")  # error
def misspelt_event(event: Any) -> None: ...


@app.middleware
def timed(call: HandlerCall) -> Iterator[None]:
    print(call.context.task, call.arguments["to"])
    result = yield
    print(result)


@app.middleware
async def waits(call: HandlerCall) -> AsyncIterator[None]:
    yield


@app.middleware(only="async")
async def awaits(call: HandlerCall) -> AsyncIterator[None]:
    yield


app.middleware(only="thread")  # error


@app.middleware  # error
def no_middleware(call: HandlerCall) -> int:
    return call.number  # error


def values(job: Job, run: Execution) -> None:
    payload: dict[str, Any] = job.payload
    texts: list[str | None] = [job.payload_json, job.metadata_json, run.result_json]
    fields: list[str] | None = job.item_key
    print(payload["to"], texts, fields, run.result["sum"], run.metadata.get("a"), job.metadata.get("a"))
    raw: str = job.payload  # error
    job.payload = {}  # error
    print(raw, job.result)  # error


async def right(ctx: JobContext) -> None:
    first: Enqueued = await email.enqueue(to="ann", template="x")
    await email.enqueue("ann")
    email.enqueue_sync("ann", template="x")
    await email.using(priority=5, delay="5m").enqueue(to="ann")
    await email.enqueue_many([{"to": "ann"}])
    await email.enqueue_many([email.call(to="ann"), email.call("bob", template="x")])
    sent: int = await (await email.enqueue(to="ann")).result(timeout="30s")
    also_sent: int = email.using(priority=1).enqueue_sync(to="ann").result_sync(timeout=30)
    doubled: int = await (await double.enqueue(3)).result()
    many: Sequence[EnqueuedJob[int]] = await email.enqueue_many([email.call(to="ann")])
    first_sent: int = await many[0].result()
    first_doubled: int = double.using(priority=1).enqueue_many_sync([{"number": 3}])[0].result_sync()
    child: EnqueuedJob[int] = await ctx.enqueue(email, "ann")
    child_doubled: int = ctx.enqueue_sync(double, 3).result_sync()
    print(first_sent, first_doubled, child, child_doubled, many[:2][0].id)
    print(sent, also_sent, doubled, await ctx.enqueue(email, "ann"), ctx.enqueue_sync(double, number=3))
    count: int = await email(ctx, "ann")
    twice: int = double(3)
    await bare.enqueue(number=3)
    paused: bool = (await app.lanes.pause("fast")).is_paused
    also: bool = app.lanes.pause_sync(name="fast").is_paused
    moved: str = app.cancel_sync(first, "no need").task
    app.edit_sync(first, priority=5)
    print(paused, also, moved, app.letters.list_sync().letters)
    general: Task[[int], int] = double
    handle: EnqueuedJob[int] = await email.enqueue("ann")
    by_name: Enqueued = await app.enqueue("anything", {"to": 5}, lane="fast")
    print(handle, by_name)
    print(first, count, twice, general, email.job(to="ann").payload)


async def wrong(ctx: JobContext) -> None:
    await email.enqueue(to=5)  # error
    await email.enqueue(two="ann")  # error
    await email.enqueue()  # error
    email.enqueue_sync(to=None)  # error
    await email.using(priority="high").enqueue(to="ann")  # error
    await email.using(colour="red").enqueue(to="ann")  # error
    await email.using(priority=1).enqueue(to=5)  # error
    double("3")  # error
    double.enqueue_sync("3")  # error
    await bare.enqueue(number="3")  # error
    await bare(3)  # error
    email.job(to=3)  # error
    await email.enqueue_many([email.call(to=3)])  # error
    await email.enqueue_many([double.call(3)])  # error
    text: str = await (await email.enqueue(to="ann")).result()  # error
    texts: str = double.enqueue_sync(3).result_sync()  # error
    await ctx.enqueue(email, to=3)  # error
    text = await (await ctx.enqueue(email, "ann")).result()  # error
    text = ctx.enqueue_sync(double, 3).result_sync()  # error
    text = await (await email.enqueue_many([email.call(to="ann")]))[0].result()  # error
    texts = double.enqueue_many_sync([double.call(3)])[0].result_sync()  # error
    print(text, texts)
    await app.lanes.pause(3)  # error
    app.lanes.pause_sync()  # error
    app.lanes.pause_sync("fast", nmae="x")  # error
    app.cancel_sync()  # error
    app.edit_sync(1, priority="high")  # error
    app.bulk_sync("cancel", "all")  # error


@app.task(lane=5)  # error
def badly_declared() -> None: ...


@app.task(lan="fast")  # error
def misspelt() -> None: ...


Windlass("sqlite:///jobs.db", lease_seconds=20, pools={"fast": 3}, keep_days=7, packs=["email"], timeout="5m")
Windlass("sqlite:///jobs.db", lease_secnds=20)  # error
Windlass("sqlite:///jobs.db", keep_days="a week")  # error
app.configure(database_url="sqlite:///other.db", lease_seconds=20)
app.configure(lease_secnds=20)  # error
windlass_on(engine, name="shop", lease_seconds=20)
windlass_on(engine, keep_days="a week")  # error
"""


def expected() -> set[int]:
    return {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# error")}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def errors(command: list[str], pattern: str) -> set[int]:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=Path(command[-1]).parent,
        env={**os.environ, "MYPYPATH": str(SOURCE)},
    )
    return {int(number) for number in re.findall(pattern, done.stdout)}


def test_mypy_finds_every_wrong_call_and_nothing_else(program: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=.mypy", str(program)]
    assert errors(command, r"program\.py:(\d+): error") == expected()


def test_pyright_finds_every_wrong_call_and_nothing_else(program: Path) -> None:
    # basedpyright is pyright in a wheel that needs no network.
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed: pyright's view of the API is NOT tested here")
    config = program.with_name("pyrightconfig.json")
    config.write_text(json.dumps({"typeCheckingMode": "standard", "extraPaths": [str(SOURCE)], "include": [program.name]}))
    command = [sys.executable, "-m", "basedpyright", "-p", str(config)]
    assert errors(command, r"program\.py:(\d+):\d+ - error") == expected()
