from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.claims import a_claimed_job
from windlass import Enqueued, InvalidInput, JobContext, JobState, RetrySpec, UnknownTask, Windlass
from windlass.core.breaker import BreakerSpec
from windlass.core.current import RunningJob, current_run
from windlass.core.hooks import EnqueueEvent
from windlass.core.ids import job_uuid
from windlass.core.retry import RetryPolicy
from windlass.core.task import Isolation

if TYPE_CHECKING:
    from windlass import JobContext as Context


def declare_email(app: Windlass) -> Any:
    @app.task(lane="fast", max_attempts=5, timeout="30s", unique=lambda to, **_: to)
    async def email(ctx: JobContext, to: str, template: str = "welcome") -> str:  # noqa: ARG001
        return f"{template} for {to}"

    return email


async def test_a_job_keeps_its_tasks_options_and_its_arguments(app: Windlass) -> None:
    email = declare_email(app)
    job = await app.get(await email.enqueue(to="ann@example.org", template="hello"))
    assert (job.task, job.lane, job.max_attempts, job.timeout_us) == ("email", "fast", 5, 30_000_000)
    assert (job.payload, job.unique_key) == ({"to": "ann@example.org", "template": "hello"}, "ann@example.org")


async def test_using_changes_only_the_next_jobs(app: Windlass) -> None:
    email = declare_email(app)
    later = await app.get(await email.using(priority=50, delay="5m", correlation_id="user-action-123").enqueue(to="bob"))
    plain = await app.get(await email.enqueue(to="eve"))
    assert (later.state, later.priority, later.correlation_id) == (JobState.SCHEDULED, 50, "user-action-123")
    assert (plain.state, plain.priority, plain.correlation_id) == (JobState.PENDING, 0, None)


async def test_every_option_of_an_enqueue_reaches_the_row(app: Windlass) -> None:
    email = declare_email(app)
    at = datetime(2030, 1, 1, tzinfo=UTC)
    job = await app.get(
        await email.using(
            run_at=at,
            retry={"base": "2s", "cap": "1m", "jitter": 0.5},
            timeout=1.5,
            unique_key="k",
            unique_scope="forever",
            subject="feed 7",
            metadata={"a": 1},
            description="d",
            created_by="me",
            target_count=3,
            item_key=["phone"],
            collection="people",
            lane="slow",
            max_attempts=2,
        ).enqueue(to="ann")
    )
    assert (job.run_at, job.unique_key, job.unique_scope, job.subject) == (at, "k", "forever", "feed 7")
    assert job.retry == RetrySpec(base=timedelta(seconds=2), cap=timedelta(minutes=1), jitter=0.5).encode()
    assert (job.timeout_us, job.metadata, job.description, job.created_by) == (1_500_000, {"a": 1}, "d", "me")
    assert (job.target_count, job.item_key, job.collection, job.lane, job.max_attempts) == (3, ["phone"], "people", "slow", 2)


async def test_the_same_key_gives_the_same_job(app: Windlass) -> None:
    email = declare_email(app)
    first = await email.enqueue(to="ann")
    assert await email.enqueue(to="ann", template="other") == Enqueued(first.id, is_duplicate=True)


@pytest.mark.parametrize(
    ("unique", "same"),
    [(["to"], True), ("to", True), (True, False), (lambda to, template: [to, template], False), (False, False)],
)
async def test_a_key_may_be_made_of_some_or_all_arguments(app: Windlass, unique: Any, same: bool) -> None:  # noqa: FBT001
    @app.task(unique=unique)
    def send(to: str, template: str) -> None: ...

    first = await send.enqueue("ann", "a")
    assert (await send.enqueue("ann", "b") == Enqueued(first.id, is_duplicate=True)) is same
    assert (await send.enqueue("ann", template="a")).is_duplicate is (unique is not False)


async def test_a_default_left_out_makes_the_same_key_as_one_written_out(app: Windlass) -> None:
    @app.task(unique=True)
    def send(to: str, template: str = "welcome") -> None: ...

    first = await send.enqueue("ann")
    assert await send.enqueue(template="welcome", to="ann") == Enqueued(first.id, is_duplicate=True)


async def test_a_long_key_is_kept_as_a_digest(app: Windlass) -> None:
    @app.task(unique=True)
    def send(text: str) -> None: ...

    key = (await app.get(await send.enqueue("x" * 5000))).unique_key
    assert key is not None
    assert key.startswith("sha256:")


async def test_many_jobs_are_enqueued_all_or_none(app: Windlass) -> None:
    email = declare_email(app)
    jobs = await email.enqueue_many([{"to": f"{number}@example.org"} for number in range(1200)])
    assert len({job.id for job in jobs}) == 1200
    with pytest.raises(InvalidInput, match="to: must be str"):
        await email.enqueue_many([{"to": "new@example.org"}, {"to": 5}])
    assert sum(count.jobs for count in await app.counts()) == 1200


async def test_the_sync_twins_do_the_same(app: Windlass) -> None:
    email = declare_email(app)
    assert app.get_sync(email.enqueue_sync(to="ann")).lane == "fast"
    assert len(email.enqueue_many_sync([{"to": "bob"}, {"to": "eve"}])) == 2
    assert app.enqueue_sync("email", {"to": "joe"}, priority=3).id > 0


async def test_jobs_of_several_tasks_go_in_one_transaction(app: Windlass) -> None:
    email = declare_email(app)

    @app.task
    def report(day: int) -> None: ...

    first, second = await app.enqueue_jobs([email.job(to="ann"), report.job(day=3)])
    assert ((await app.get(first)).task, (await app.get(second)).task) == ("email", "report")


async def test_a_call_runs_the_plain_function(app: Windlass) -> None:
    email = declare_email(app)

    @app.task
    def double(number: int) -> int:
        """Twice."""
        return 2 * number

    context: Any = object()
    assert await email(context, "ann", template="x") == "x for ann"
    assert (double(4), double.__doc__, double.name) == (8, "Twice.", "double")


async def test_a_task_known_by_name_is_checked_and_keyed_like_itself(app: Windlass) -> None:
    declare_email(app)
    job = await app.get(await app.enqueue("email", {"to": "ann"}, lane="slow"))
    assert (job.unique_key, job.lane, job.max_attempts) == ("ann", "slow", 5)
    with pytest.raises(InvalidInput, match="template: must be str"):
        await app.enqueue("email", {"to": "ann", "template": 3})


async def test_an_unknown_task_is_refused_but_for_pull_workers(app: Windlass) -> None:
    with pytest.raises(UnknownTask, match="'nobody'"):
        await app.enqueue("nobody", {})
    assert (await app.get(await app.enqueue("nobody", {"a": 1}, lane="pull"))).payload_json == '{"a":1}'


async def test_unknown_tasks_can_be_accepted(url: str) -> None:
    async with Windlass(url, accept_unknown=True) as app:
        assert (await app.get(await app.enqueue("nobody"))).task == "nobody"


async def test_what_a_handler_enqueues_is_its_child(app: Windlass) -> None:
    email = declare_email(app)
    parent = await email.enqueue(to="parent")
    token = current_run.set(RunningJob(a_claimed_job(id=parent.id)))
    try:
        child = await app.get(await email.enqueue(to="child"))
        named = await app.get(await email.using(correlation_id="mine").enqueue(to="other"))
        blocking = app.get_sync(email.enqueue_sync(to="third"))
        by_name = await app.get(await app.enqueue("someone", lane="pull"))
    finally:
        current_run.reset(token)
    uuid = str(job_uuid(parent.id))
    assert [(job.parent_id, job.correlation_id) for job in (child, named, blocking, by_name)] == [
        (parent.id, uuid),
        (parent.id, "mine"),
        (parent.id, uuid),
        (parent.id, uuid),
    ]


async def test_enqueue_hooks_are_told_and_cannot_break_an_enqueue(app: Windlass, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[EnqueueEvent] = []
    email = declare_email(app)

    @app.on("enqueue")
    def hear(event: EnqueueEvent) -> None:
        heard.append(event)

    @app.on("enqueue")
    def break_down(event: EnqueueEvent) -> None:
        raise RuntimeError(f"no {event.job_id}")

    first = await email.enqueue(to="ann")
    email.enqueue_sync(to="ann")
    await email.enqueue_many([{"to": "bob"}])
    assert [(event.job_id == first.id, event.is_duplicate) for event in heard] == [(True, False), (True, True), (False, False)]
    assert "an enqueue hook failed" in caplog.text


def test_hooks_are_checked() -> None:
    app = Windlass("sqlite://")

    async def later(_event: Any) -> None: ...

    with pytest.raises(InvalidInput, match="plain function"):
        app.on("enqueue")(later)
    with pytest.raises(InvalidInput, match="use one of enqueue, start, finish, fail"):
        app.on("enqueu")(later)  # type: ignore[call-overload]
    assert app.on("finish")(later) is later


def test_a_spec_says_all_a_worker_must_know() -> None:
    app = Windlass("sqlite://")

    @app.task(
        name="mail.send",
        isolation="process",
        never_retry=[ValueError, KeyError],
        retry_by_error={OSError: {"base": "10s"}},
        breaker="smtp",
        exclusive=True,
        memory_limit_mb=128,
        retry=RetrySpec(base=timedelta(seconds=3)),
        priority=7,
    )
    async def send(ctx, to: str) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001

    spec = send.spec
    assert (spec.name, spec.isolation, spec.takes_context, spec.is_exclusive) == ("mail.send", Isolation.PROCESS, True, True)
    assert (spec.never_retry, spec.breaker, spec.memory_limit_mb) == ((ValueError, KeyError), BreakerSpec("smtp"), 128)
    [(kind, policy)] = spec.retry_by_error
    assert (kind, policy.base, isinstance(policy, RetryPolicy)) == (OSError, timedelta(seconds=10), True)
    assert (spec.retry.base, spec.priority) == (timedelta(seconds=3), 7)
    assert spec.arguments('{"to":"ann"}') == {"to": "ann"}
    assert app.registry.get("mail.send") is spec


def test_a_breaker_known_by_name_takes_its_limits_from_the_settings() -> None:
    app = Windlass("sqlite://", breaker_threshold=9, breaker_open="5s")

    @app.task(breaker="smtp")
    def send() -> None: ...

    assert send.spec.breaker == BreakerSpec("smtp", 9, timedelta(seconds=5))


def test_coroutines_run_on_the_loop_and_functions_in_threads() -> None:
    app = Windlass("sqlite://")

    @app.task
    async def swim() -> None: ...

    @app.task
    def walk() -> None: ...

    assert (swim.spec.isolation, walk.spec.isolation) == (Isolation.ASYNC, Isolation.THREAD)
    assert not swim.spec.takes_context


def test_a_context_imported_for_type_checkers_only_is_found() -> None:
    app = Windlass("sqlite://")

    def hidden(ctx: Context, to: str) -> None: ...

    def named(first: JobContext) -> None: ...

    hidden.__annotations__["ctx"] = "windlass.JobContext"
    assert app.task(name="hidden")(hidden).spec.takes_context
    assert app.task(name="named")(named).spec.takes_context
    assert asyncio.iscoroutinefunction(hidden) is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": "fast"}, "lanes: is not an option"),
        ({"timeout": "soon"}, "timeout:"),
        ({"isolation": "async"}, "isolation: a function runs in thread or process"),
        ({"isolation": "fiber"}, "isolation: use one of async, thread, process"),
        ({"unique": ["nobody"]}, "unique: is not an argument"),
        ({"on_conflict": "shout"}, "on_conflict: use one of"),
        ({"unique_scope": "never"}, "unique_scope: use one of"),
        ({"retry": {"bas": 1}}, "bas: is not an option"),
        ({"retry": 5}, "retry: must be a RetrySpec"),
        ({"never_retry": [3]}, "never_retry: must be exception types"),
        ({"max_attempts": 0}, "max_attempts:"),
        ({"name": "x" * 300}, "task:"),
        ({"memory_limit_mb": 64}, "memory_limit_mb: needs isolation='process'"),
        ({"metadata": {"a": float("nan")}}, "metadata: numbers must be finite"),
    ],
)
def test_a_bad_option_is_named_when_the_task_is_declared(options: Any, message: str) -> None:
    app = Windlass("sqlite://")

    def send(to: str) -> None: ...

    with pytest.raises(InvalidInput, match=message):
        app.task(**options)(send)


def test_a_name_is_taken_once_and_a_lambda_has_none() -> None:
    app = Windlass("sqlite://")

    def send(to: str) -> None: ...

    task = app.task(send)
    with pytest.raises(InvalidInput, match="already registered"):
        app.task(send)
    with pytest.raises(InvalidInput, match="is a task already"):
        app.task(task)
    with pytest.raises(InvalidInput, match="give a name"):
        app.task(lambda: None)


def test_a_misspelt_option_of_an_enqueue_is_named() -> None:
    app = Windlass("sqlite://")

    @app.task
    def send(to: str) -> None: ...

    bad: Any = {"prioritty": 3}
    with pytest.raises(InvalidInput, match="prioritty: is not an option"):
        send.using(**bad)
