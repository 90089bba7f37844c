"""The application: tasks, settings and the database they live in. The only place that picks adapters."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from random import Random, SystemRandom
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from windlass import __version__
from windlass.client.declared import DeclaredTasks
from windlass.client.guard import Guard
from windlass.client.operations import Operator
from windlass.client.options import JOB_OPTIONS, TaskOptions, check_names, job_fields
from windlass.client.stores_by_loop import OpenedStore, StoresByLoop
from windlass.client.task import Task, descended, takes
from windlass.config import SettingOrigin, Settings, check_settings, load, origins
from windlass.core.blocking import run
from windlass.core.breaker import BreakerSpec
from windlass.core.durations import Duration, parse_duration
from windlass.core.hooks import EndHook, EnqueueHook, Hooks, StartHook
from windlass.core.job import NewJob
from windlass.core.known_task import DeclaredOptions
from windlass.core.payload import encode_object
from windlass.core.pool import PULL_LANE
from windlass.core.retry import RetrySpec
from windlass.core.task import Registry
from windlass.errors import ConfigError, InvalidInput
from windlass.worker.context import JobContext
from windlass.worker.middleware import M, Middleware, check_goes_around, check_middleware, wrapped

if TYPE_CHECKING:
    from windlass.core.alerts import Notice
    from windlass.core.audit import Actor
    from windlass.core.finding import DoctorOptions, Examination
    from windlass.given_settings import GivenSettings
    from windlass.otel import Tracing
    from windlass.store import Store
    from windlass.store.backend import Backend
    from windlass.upkeep.loop import UpkeepOptions
    from windlass.worker.program import WorkerOptions
    from windlass.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
_PULLED = RetrySpec(profile="pull")
Lifespan = Callable[..., Any]
"""An async context manager, or the async generator of one; takes the application or nothing and yields `ctx.state`."""


class TaskDecorator:
    """Turns a function into a task, with options."""

    def __init__(self, app: Windlass, options: TaskOptions) -> None:
        """Keep the options until the function is there."""
        self._app = app
        self._options = options

    def __call__(self, function: Callable[P, R], /) -> Task[P, R]:
        """Register the function."""
        return self._app.add_task(function, self._options)


class Windlass(Operator):
    """An application. Making one does no I/O: the database is opened at first use."""

    def __init__(
        self,
        database_url: str | None = None,
        *,
        name: str = "app",
        lifespan: Lifespan | None = None,
        config_file: str | Path | None = None,
        rng: Random | None = None,
        **settings: Unpack[GivenSettings],
    ) -> None:
        """Take the database from the argument, WINDLASS_DATABASE_URL, windlass.toml or the default; so each setting.

        Raises ConfigError for an argument that is no setting.
        """
        # Here, where the mistake is; values are read when they are first needed.
        if settings:
            check_settings(settings)
        self.name = name
        self.registry = Registry()
        self.hooks = Hooks()
        self.middlewares: list[Middleware] = []
        self._only_coroutines: list[Middleware] = []
        """The middleware that was declared with `only="async"`."""
        self.tasks: dict[str, Task[..., Any]] = {}
        self.declared_elsewhere = DeclaredTasks()
        self._failures: Counter[str] = Counter()
        self._lifespan = lifespan
        self._given = {"database_url": database_url, **settings}
        self._file = None if config_file is None else Path(config_file)
        self._rng = SystemRandom() if rng is None else rng
        self._owners: dict[str, str] = {}
        """The owner that schedules of a task are declared for, where it is not this application."""
        super().__init__(self._here, self, self.hooks)
        self._twin = Operator(self._blocking, self, self.hooks)

    @cached_property
    def settings(self) -> Settings:
        """The settings, read when they are first needed; raises ConfigError naming what is wrong."""
        return load(self._given, file=self._file)

    @cached_property
    def tracing(self) -> Tracing | None:
        """What writes spans and metrics for OpenTelemetry, if the settings ask for it; raises ConfigError without the package."""
        if not self.settings.otel:
            return None
        try:
            from windlass.otel import Tracing  # noqa: PLC0415 - a program without traces pays nothing, and may lack the package
        except ModuleNotFoundError as error:
            raise ConfigError("otel: is on, and opentelemetry-api is not installed: pip install 'windlass[otel]'") from error
        return Tracing(__version__)

    @cached_property
    def setting_origins(self) -> Mapping[str, SettingOrigin]:
        """Where each setting comes from, by its name here; those at their default are left out."""
        return origins(self._given, file=self._file)

    def configure(self, *, database_url: str | None = None, **settings: Unpack[GivenSettings]) -> None:
        """Set settings after the application was made, as a command line does; before anything is opened."""
        if "_stores" in self.__dict__:
            raise ConfigError("settings can be given only before the database is opened")
        self._given |= settings
        if database_url is not None:
            self._given["database_url"] = database_url
        self.__dict__.pop("settings", None)
        self.__dict__.pop("tracing", None)
        self.__dict__.pop("setting_origins", None)

    def check_schema(self) -> None:
        """Raise SchemaError when the tables are missing or do not fit this version; SQLite makes them by itself."""
        run(self._check_schema())

    async def _check_schema(self) -> None:
        await (await self.blocking_store()).check_schema()

    @cached_property
    def _stores(self) -> StoresByLoop:
        return StoresByLoop(self._backend(self.settings), self.tracing)

    def _backend(self, settings: Settings) -> Backend:
        from windlass.store.backend import open_backend  # noqa: PLC0415 - the engine is loaded when it is needed

        return open_backend(
            settings.database_url,
            rng=self._rng,
            profiles=settings.profiles,
            statement_timeout=settings.statement_timeout,
            listen_url=settings.listen_url,
        )

    async def _here(self) -> Any:
        return await self._stores.here()

    async def _blocking(self) -> Any:
        return await self._stores.blocking()

    def acting(self, actor: Actor) -> Operator:
        """Return the same verbs with what they change written to the audit log under this name."""

        async def opened() -> OpenedStore:
            here = await self._stores.here()
            return here._replace(store=here.store.acting(actor))

        return Operator(opened, self, self.hooks)

    def bounded(self, timeout: timedelta) -> Operator:
        """Return the same verbs whose reads raise StoreBusy when they take longer."""

        async def opened() -> OpenedStore:
            here = await self._stores.here()
            return here._replace(store=here.store.bounded(timeout))

        return Operator(opened, self, self.hooks)

    def acting_sync(self, actor: Actor) -> Operator:
        """Do what `acting` does for code without an event loop."""

        async def opened() -> OpenedStore:
            blocking = await self._stores.blocking()
            return blocking._replace(store=blocking.store.acting(actor))

        return Operator(opened, self, self.hooks)

    @property
    def blocking(self) -> Operator:
        """The same verbs as coroutines that never suspend, for `windlass.core.blocking.run`."""
        return self._twin

    async def blocking_store(self) -> Store:
        """Return the store of code without an event loop, whose coroutines never suspend."""
        return (await self._stores.blocking()).store

    def migrate(self) -> None:
        """Bring the database's schema up to date; SQLite files do it by themselves."""
        self._backend(self.settings).migrate()

    async def doctor(self, **options: Unpack[DoctorOptions]) -> Examination:
        """Examine the database, the fleet and the settings; a database that does not answer is a finding, not an error."""
        from windlass.doctor import examine  # noqa: PLC0415 - loaded when it is asked for

        return await examine(self.store, self.settings, options)

    def doctor_sync(self, **options: Unpack[DoctorOptions]) -> Examination:
        """Do what `doctor` does for code without an event loop."""
        from windlass.doctor import examine  # noqa: PLC0415 - loaded when it is asked for

        return run(examine(self.blocking_store, self.settings, options, is_blocking=True))

    def install_views(self) -> tuple[str, ...]:
        """Make the SQL views, all or none; raises SchemaError where a name is taken by something that is not ours."""
        from windlass.store import views  # noqa: PLC0415 - the engine is loaded when it is needed

        return self._backend(self.settings).script(views.install)

    def remove_views(self) -> tuple[str, ...]:
        """Drop the SQL views that are ours; returns their names."""
        from windlass.store import views  # noqa: PLC0415 - the engine is loaded when it is needed

        return self._backend(self.settings).script(views.remove)

    async def __aenter__(self) -> Self:
        await self._here()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    async def aclose(self) -> None:
        """Close the stores of this event loop and of blocking code; the next use opens them again."""
        if "_stores" in self.__dict__:
            await self._stores.aclose()

    def close(self) -> None:
        """Close the database without an event loop; pools of running event loops are closed by those."""
        if "_stores" in self.__dict__:
            self._stores.close()

    async def leave(self) -> None:
        """Close what only the running event loop uses; for a loop that ends while the application goes on."""
        if "_stores" in self.__dict__:
            await self._stores.leave()

    @contextmanager
    def bound(self, database_url: str, *, around: Callable[[Backend], Backend]) -> Iterator[Self]:
        """Use another database until the block ends, then drop what was declared in it; for tests.

        Close the application before the end: what was opened on the other database is not closed by itself.
        """
        before, hooks, failures = dict(vars(self)), self.hooks.copy(), Counter(self._failures)
        settings = replace(self.settings, database_url=database_url, listen_url=None)
        stores = StoresByLoop(around(self._backend(settings)), self.tracing)
        own = {
            "registry": self.registry.copy(),
            "tasks": dict(self.tasks),
            "middlewares": list(self.middlewares),
            "declared_elsewhere": DeclaredTasks(),
        }
        vars(self).update(settings=settings, _stores=stores, **own)
        self._failures.clear()
        try:
            yield self
        finally:
            for name in vars(self).keys() - before.keys():
                del vars(self)[name]
            vars(self).update(before)
            # Others hold these two, so they stay the same objects.
            self.hooks.become(hooks)
            self._failures.clear()
            self._failures.update(failures)

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(self, function: None = None, /, **options: Unpack[TaskOptions]) -> TaskDecorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Unpack[TaskOptions]) -> Any:
        """Declare a task: `@app.task` or `@app.task(lane=…, …)`."""
        return TaskDecorator(self, options) if function is None else self.add_task(function, options)

    def add_task(self, function: Callable[P, R], options: TaskOptions) -> Task[P, R]:
        """Declare a task without the decorator; raises InvalidInput for an option or a signature that cannot work."""
        if isinstance(function, Task):
            raise InvalidInput("function", function, "is a task already; declare its function under another name")
        breaker = options.get("breaker")
        if isinstance(breaker, str):
            options = {**options, "breaker": self.settings.breaker(breaker)}
        made = Task(function, options, (self, self._twin), takes_context=takes(function, JobContext))
        # Found out now, and not when a worker starts.
        made.schedule(self.name)
        self.registry.add(made.spec)
        self.tasks[made.name] = made
        return made

    @property
    def accepts_unknown(self) -> bool:
        """Whether jobs of tasks without known code may be enqueued."""
        return self.settings.accept_unknown

    def has_code(self, task: str) -> bool:
        """Whether this process has a task's code."""
        return task in self.tasks

    def describe(
        self, task: str, payload: Mapping[str, Any], options: Mapping[str, Any], declared: DeclaredOptions | None = None
    ) -> tuple[NewJob, bool]:
        """Make a job of a task known by name, and return whether this process has its code; else `declared` has its options."""
        check_names(options, JOB_OPTIONS)
        known = self.tasks.get(task)
        if known is not None:
            return known.using(**options).job_of_payload(payload), True
        if declared is None:
            fields = {"task": task, "payload": encode_object(dict(payload)), **job_fields(options)}
        else:
            fields = {"task": task, **self.declared_elsewhere.fields(task, payload, declared), **job_fields(options)}
        if fields.get("lane") == PULL_LANE:
            fields.setdefault("retry", _PULLED)
        return NewJob(**descended(fields)), False

    @overload
    def on(self, event: Literal["enqueue"]) -> Callable[[EnqueueHook], EnqueueHook]: ...

    @overload
    def on(self, event: Literal["start"]) -> Callable[[StartHook], StartHook]: ...

    @overload
    def on(self, event: Literal["finish", "fail"]) -> Callable[[EndHook], EndHook]: ...

    def on(self, event: str) -> Callable[[Any], Any]:
        """Register a hook for `enqueue`, `start`, `finish` or `fail`."""

        def register(hook: Any) -> Any:
            self.hooks.add(event, hook)
            return hook

        return register

    @overload
    def middleware(self, function: M, /) -> M: ...

    @overload
    def middleware(self, function: None = None, /, *, only: Literal["async"]) -> Callable[[M], M]: ...

    def middleware(self, function: Any = None, /, *, only: Literal["async"] | None = None) -> Any:
        """Wrap every run: a generator function that gets a HandlerCall and yields once, where the handler runs.

        The first that is declared is the outermost. One that is `async` cannot wrap a function: a worker that has functions
        as tasks raises ConfigError, unless `only="async"` declares that the middleware is for coroutines only.
        """

        def register(function: M) -> M:
            check_middleware(function, only=only)
            self.middlewares.append(function)
            if only is not None:
                self._only_coroutines.append(function)
            return function

        return register if function is None else register(function)

    def breaker(self, name: str, *, threshold: int | None = None, open_for: Duration | None = None) -> Guard:
        """Guard a block with a breaker: `with` or `async with`; raises BreakerOpen while it is open."""
        known = self.settings.breaker(name)
        wait = known.open_for if open_for is None else parse_duration(open_for, field="open_for")
        return Guard(BreakerSpec(name, threshold or known.threshold, wait), (self, self._twin), self._failures)

    def lifespan(self, function: Lifespan) -> Lifespan:
        """Declare what a worker opens before its first job and closes after its last; what it yields is `ctx.state`."""
        if self._lifespan is not None:
            raise InvalidInput("lifespan", function, "the application has one already")
        self._lifespan = function
        return function

    @asynccontextmanager
    async def open_state(self) -> AsyncIterator[Any]:
        """Open what the lifespan opens, for as long as the block lasts."""
        if self._lifespan is None:
            yield None
            return
        async with self._manager(self._lifespan) as state:
            yield state

    @asynccontextmanager
    async def working(
        self,
        *,
        target: str | None = None,
        options: WorkerOptions | None = None,
        end_process: Callable[[], None] | None = None,
    ) -> AsyncIterator[Worker]:
        """Run a worker with its upkeep in this process for as long as the block lasts.

        Leaving the block stops it in order. `target`, written `module:attribute`, shows child processes where this application
        is; only tasks with `isolation="process"` need it. `end_process` is called, on another thread, when a handler blocks the
        event loop beyond its timeout and the grace: its run is then recorded as timed out, and all other jobs are given back.
        """
        # Loaded where it is used: a program that only enqueues pays nothing for the worker.
        from windlass.clock import DatabaseClock  # noqa: PLC0415
        from windlass.upkeep.loop import Upkeep  # noqa: PLC0415
        from windlass.worker.declarations import Declarations  # noqa: PLC0415
        from windlass.worker.presence import Presence  # noqa: PLC0415
        from windlass.worker.program import Program  # noqa: PLC0415
        from windlass.worker.replacement import Replacement  # noqa: PLC0415
        from windlass.worker.unserved import Unserved  # noqa: PLC0415
        from windlass.worker.worker import Worker  # noqa: PLC0415

        # First, so that what cannot work leaves nothing behind.
        registry = self.served()
        store = await self.store()
        chosen = options or self.worker_options()
        clock = DatabaseClock(await store.clock())
        declarations = Declarations(store, self.name, self.declared_schedules())
        await declarations.enter()
        async with self.open_state() as state, store.wakeups as wakeups, asyncio.TaskGroup() as group:
            program = Program(
                registry=registry,
                hooks=self.hooks,
                profiles=self.settings.profiles,
                state=state,
                target=target,
                tracing=self.tracing,
            )
            name = self.process_name()
            blocking = await self.blocking_store()
            worker = Worker(
                store,
                blocking,
                program,
                clock=clock,
                rng=self._rng,
                name=name,
                options=chosen,
                replacement=None if end_process is None else Replacement(blocking, end_process),
                is_notified=True,
            )
            upkeep = Upkeep(store, clock=clock, options=self._upkeep_options(), promoted=worker.wake, name=name)
            presence = Presence(
                store, program.registry, chosen, name=name, version=__version__, app_version=self.settings.version
            )
            await presence.enter()
            wakeups.subscribe(worker.wake)
            wakeups.subscribe(upkeep.wake)
            wakeups.subscribe(presence.wake)
            beside = [
                group.create_task(upkeep.run()),
                group.create_task(presence.keep(worker)),
                group.create_task(Unserved(store).keep()),
                group.create_task(declarations.keep()),
            ]
            work = group.create_task(worker.run())
            try:
                yield worker
            finally:
                worker.stop()
                await work
                if not worker.holds_runs:
                    # A worker that reports its stop loses its leases at once.
                    await presence.leave()
                for task in beside:
                    task.cancel()

    @property
    def declared(self) -> tuple[str, ...]:
        """The names of the schedules the code declares: what pruning this application's schedules at once keeps."""
        return tuple(job.name for job in self.declared_schedules() if job.name is not None)

    def declared_schedules(self) -> list[NewJob]:
        """Describe every schedule the code declares, also of tasks that this process does not run."""
        described = (task.schedule(self._owners.get(name, self.name)) for name, task in self.tasks.items())
        return [job for job in described if job is not None]

    def disown(self, tasks: Iterable[str], owner: str) -> None:
        """Declare the schedules of these tasks for `owner`: those that several applications declare have a common one."""
        self._owners |= dict.fromkeys(tasks, owner)

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Do the upkeep in this process, without a worker, for as long as the block lasts."""
        from windlass.clock import DatabaseClock  # noqa: PLC0415 - as in `working`
        from windlass.upkeep.loop import Upkeep  # noqa: PLC0415 - as in `working`

        store = await self.store()
        clock = DatabaseClock(await store.clock())
        async with store.wakeups as wakeups, asyncio.TaskGroup() as group:
            upkeep = Upkeep(store, clock=clock, options=self._upkeep_options(), name=self.process_name())
            wakeups.subscribe(upkeep.wake)
            chores = group.create_task(upkeep.run())
            try:
                yield
            finally:
                chores.cancel()

    @property
    def rng(self) -> Random:
        """Where chance comes from."""
        return self._rng

    def process_name(self) -> str:
        """Name this process as no other is named."""
        return f"{socket.gethostname()}:{os.getpid()}:{self._rng.randrange(2**32):08x}"

    def served(self) -> Registry:
        """Return the tasks this process runs, inside their middleware: all it has code for, or those the settings name.

        Raises ConfigError where middleware would have to await around a function.
        """
        return self.inside_middleware(self._served())

    def inside_middleware(self, tasks: Registry) -> Registry:
        """Return the tasks with this application's middleware around them; raises ConfigError as `served` does."""
        check_goes_around(tasks, [each for each in self.middlewares if each not in self._only_coroutines])
        return wrapped(tasks, self.middlewares)

    def _served(self) -> Registry:
        wanted = self.settings.tasks
        if wanted is None:
            return self.registry
        unknown = set(wanted) - self.registry.names
        if unknown:
            raise ConfigError(f"tasks: the application has no {', '.join(sorted(unknown))}")
        served = Registry()
        for spec in self.registry:
            if spec.name in wanted:
                served.add(spec)
        return served

    def worker_options(self) -> WorkerOptions:
        """Return how workers of this application work."""
        from windlass.worker.program import WorkerOptions  # noqa: PLC0415 - as in `working`

        settings = self.settings
        return WorkerOptions(
            pools=settings.pools,
            lease=settings.lease,
            poll_interval=settings.poll_interval,
            prefetch=settings.prefetch,
            fast_timeout=settings.fast_timeout,
            timeout=settings.timeout,
            grace=settings.grace,
        )

    def _upkeep_options(self) -> UpkeepOptions:
        from windlass.upkeep.chores import AlertOptions  # noqa: PLC0415 - as in `working`
        from windlass.upkeep.loop import UpkeepOptions  # noqa: PLC0415 - as in `working`

        settings = self.settings
        return UpkeepOptions(
            lease=settings.lease,
            poll_interval=settings.poll_interval,
            reclaim_interval=settings.reclaim_interval,
            aging_interval=settings.aging_interval,
            retention_interval=settings.retention_interval,
            retention=settings.retention,
            alerts=AlertOptions(rules=settings.alert_rules, notify=self._notices),
        )

    def _notices(self, notice: Notice) -> list[NewJob]:
        """Make the notification jobs of an alert, for the configured recipients."""
        from windlass.core import alert_notice  # noqa: PLC0415 - as in `working`

        hook, mail = self.settings.alert_webhook, self.settings.alert_mail
        payloads = {
            **({} if hook is None else {alert_notice.WEBHOOK_TASK: alert_notice.webhook(notice, hook)}),
            **({} if mail is None else {alert_notice.EMAIL_TASK: alert_notice.email(notice, mail)}),
        }
        return [
            self.describe(task, payload, {} if self.has_code(task) else {"lane": alert_notice.LANE})[0]
            for task, payload in payloads.items()
        ]

    def _manager(self, lifespan: Lifespan) -> AbstractAsyncContextManager[Any]:
        made = lifespan(self) if inspect.signature(lifespan).parameters else lifespan()
        if inspect.isasyncgen(made):
            return asynccontextmanager(lambda: made)()
        manager: AbstractAsyncContextManager[Any] = made
        return manager
