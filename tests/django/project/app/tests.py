"""What holds for a project that uses Windlass, on the database that the settings name."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest import SkipTest

from django.contrib.auth.models import Permission, User
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.transaction import TransactionManagementError
from django.test import AsyncClient, Client, TestCase, TransactionTestCase, override_settings
from django.urls import reverse
from django.utils import timezone
from project.app import tasks

from windlass import InvalidInput
from windlass.core.ids import parse_job_id
from windlass.django import task_options
from windlass.django.dashboard import close
from windlass.django.tasks_api import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)

PATIENCE_S = 60.0
QUEUE = "/ops/queue"
JSON = "application/json"
STREAM = {"accept": "text/event-stream"}


def backend() -> Any:
    return task_backends["default"]


def is_in_memory() -> bool:
    return connection.vendor == "sqlite" and "mode=memory" in str(connection.settings_dict["NAME"])


@contextmanager
def worker() -> Iterator[None]:
    """Run a worker on a thread of its own, as `windlass_worker` runs one in a process."""
    if is_in_memory():
        raise SkipTest("a worker cannot reach a database in memory")
    app = backend().serving_app()
    started = threading.Event()

    async def work() -> None:
        async with app, app.working(target="windlass.django.application:default"):
            loop.append(asyncio.get_running_loop())
            started.set()
            await over.wait()

    loop: list[asyncio.AbstractEventLoop] = []
    over = asyncio.Event()
    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    assert started.wait(PATIENCE_S)
    try:
        yield
    finally:
        loop[0].call_soon_threadsafe(over.set)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def ended(result: Any) -> Any:
    """Wait until a task has ended."""
    wait = threading.Event()
    for _ in range(int(PATIENCE_S / 0.05)):
        result.refresh()
        if result.is_finished:
            return result
        wait.wait(0.05)
    raise AssertionError(f"{result} did not end")


def exists(result: Any) -> bool:
    try:
        backend().get_result(result.id)
    except TaskResultDoesNotExist:
        return False
    return True


class InTheTestsTransaction(TestCase):
    def test_a_job_is_seen_by_the_transaction_that_made_it(self) -> None:
        result = tasks.add.enqueue(1, two=2)
        found = tasks.add.get_result(result.id)
        self.assertEqual(found, result)
        self.assertEqual((found.status, found.args, found.kwargs), (TaskResultStatus.READY, [1], {"two": 2}))
        self.assertEqual((found.attempts, found.started_at, found.errors), (0, None, []))

    def test_arguments_come_back_as_they_were_given(self) -> None:
        for args, kwargs in (((), {}), ((1, [2], None), {}), ((), {"a": {"b": 1}}), (("x",), {"args": 1, "kwargs": 2})):
            found = backend().get_result(tasks.anything.enqueue(*args, **kwargs).id)
            self.assertEqual((found.args, found.kwargs), (list(args), kwargs))

    def test_what_json_cannot_carry_is_refused_at_once(self) -> None:
        with self.assertRaisesMessage(TypeError, "Unsupported type"):
            tasks.anything.enqueue(timezone.now())
        with self.assertRaisesMessage(TypeError, "cannot be the name"):
            tasks.anything.enqueue(**{"*args": 1})

    def test_queue_priority_and_time_reach_the_job(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        result = tasks.count_users.using(priority=-3, run_after=later).enqueue(0)
        job = backend().client.get_sync(parse_job_id(result.id))
        self.assertEqual((job.lane, job.base_priority, job.run_at), ("mail", -3, later))
        found = backend().get_result(result.id).task
        self.assertEqual((found.queue_name, found.priority, found.run_after), ("mail", -3, later))

    def test_a_queue_that_is_not_named_is_refused(self) -> None:
        with self.assertRaises(InvalidTask):
            tasks.add.using(queue_name="elsewhere")

    def test_a_unique_task_is_enqueued_once(self) -> None:
        first = tasks.add_once.enqueue(1, 2)
        self.assertEqual(tasks.add_once.enqueue(one=1, two=3).id, first.id)
        self.assertNotEqual(tasks.add_once.enqueue(2).id, first.id)
        keyed = tasks.add.using(unique_key="k")
        self.assertEqual(keyed.enqueue(1).id, keyed.enqueue(2).id)

    def test_ids_that_are_of_no_job_find_nothing(self) -> None:
        tasks.add.enqueue(1)
        for unknown in ("1", "x", "b17d0000-0000-8002-8000-00000000ffff", "00000000-0000-4000-8000-000000000000"):
            with self.assertRaises(TaskResultDoesNotExist):
                backend().get_result(unknown)

    def test_a_job_that_is_no_task_of_the_project_has_no_result(self) -> None:
        job = backend().client.enqueue_sync("os.getcwd", lane="pull")
        with self.assertRaisesMessage(TaskResultDoesNotExist, "os.getcwd"):
            backend().result_of_job(job.id)

    def test_the_signal_of_an_enqueue_brings_its_result(self) -> None:
        heard: list[Any] = []

        def hear(sender: Any, task_result: Any, **_: Any) -> None:
            heard.append((sender, task_result))

        task_enqueued.connect(hear)
        try:
            result = tasks.add.enqueue(1)
        finally:
            task_enqueued.disconnect(hear)
        self.assertEqual(heard, [(type(backend()), result)])

    def test_after_an_error_nothing_is_enqueued_any_more(self) -> None:
        with self.assertRaises(TransactionManagementError), transaction.atomic():
            transaction.set_rollback(True)
            tasks.add.enqueue(1)


class InItsOwnTransaction(TransactionTestCase):
    def test_a_rollback_drops_the_job_and_a_commit_keeps_it(self) -> None:
        results = []
        for name in ("stays", "goes"):
            with transaction.atomic():
                User.objects.create(username=name)
                results.append(tasks.add.enqueue(1))
                transaction.set_rollback(name == "goes")
        self.assertEqual([exists(result) for result in results], [True, False])
        self.assertEqual([user.username for user in User.objects.all()], ["stays"])

    def test_a_savepoint_drops_what_is_inside_of_it_alone(self) -> None:
        with transaction.atomic():
            outer = tasks.add.enqueue(1)
            with transaction.atomic():
                inner = tasks.add.enqueue(2)
                transaction.set_rollback(True)
        self.assertEqual((exists(outer), exists(inner)), (True, False))

    def test_nobody_else_sees_a_job_before_its_commit(self) -> None:
        if is_in_memory():
            self.skipTest("the database in memory has one connection")
        seen: list[bool] = []

        def look(result: Any) -> None:
            try:
                seen.append(exists(result))
            finally:
                connections.close_all()

        for look_after in (False, True):
            with transaction.atomic():
                result = tasks.add.enqueue(1)
                if not look_after:
                    self._apart(look, result)
            if look_after:
                self._apart(look, result)
        self.assertEqual(seen, [False, True])

    def _apart(self, look: Any, result: Any) -> None:
        thread = threading.Thread(target=look, args=[result])
        thread.start()
        thread.join(PATIENCE_S)

    def test_outside_of_a_transaction_a_job_is_committed_at_once(self) -> None:
        result = tasks.add.enqueue(1)
        self.assertFalse(connection.in_atomic_block)
        connection.close() if not is_in_memory() else None
        self.assertTrue(exists(result))

    async def test_coroutines_enqueue_and_read(self) -> None:
        result = await tasks.count_users.aenqueue(least=3)
        found = await tasks.count_users.aget_result(result.id)
        await found.arefresh()
        self.assertEqual(found, result)


class AtWork(TransactionTestCase):
    def test_a_worker_runs_tasks_and_tells_how_they_ended(self) -> None:
        heard: list[tuple[str, str, str]] = []

        def start(task_result: Any, **_: Any) -> None:
            heard.append(("started", task_result.task.name, task_result.status))

        def finish(task_result: Any, **_: Any) -> None:
            heard.append(("finished", task_result.task.name, task_result.status))

        User.objects.create(username="one")
        waiting = [
            tasks.add.enqueue(1, two=2),
            tasks.count_users.enqueue(1),
            tasks.fail_once.enqueue("word"),
            tasks.fail.enqueue(),
            tasks.leave.enqueue(),
            tasks.sign_up.enqueue(name="two"),
            tasks.sign_up.enqueue(name="one"),
        ]
        task_started.connect(start)
        task_finished.connect(finish)
        try:
            with worker(), self.assertLogs():
                done = [ended(result) for result in waiting]
        finally:
            task_started.disconnect(start)
            task_finished.disconnect(finish)
        add, counted, once, failed, left, signed_up, refused = done
        self.assertEqual([add.return_value, counted.return_value], [3, True])
        self.assertEqual((once.return_value, once.attempts, len(once.errors)), ("word 2 1", 2, 1))
        self.assertIs(once.errors[0].exception_class, LookupError)
        self.assertEqual(failed.status, TaskResultStatus.FAILED)
        self.assertIs(failed.errors[0].exception_class, ValidationError)
        self.assertIn("raise ValidationError", failed.errors[0].traceback)
        with self.assertRaisesMessage(ValueError, "Task failed"):
            print(failed.return_value)
        self.assertIs(left.errors[0].exception_class, SystemExit)
        self.assertEqual((signed_up.status, refused.status), (TaskResultStatus.SUCCESSFUL, TaskResultStatus.FAILED))
        self.assertLessEqual(add.enqueued_at, add.started_at)
        self.assertLessEqual(add.last_attempted_at, add.finished_at)
        self.assertEqual([kind for kind, name, _ in heard if name == "fail_once"], ["started", "started", "finished"])
        self.assertIn(("finished", "fail", "FAILED"), heard)
        self.assertIn(("finished", "add", "SUCCESSFUL"), heard)

    def test_a_job_that_an_operator_cancels_has_failed(self) -> None:
        result = tasks.add.enqueue(1)
        backend().client.cancel_sync(parse_job_id(result.id))
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.FAILED)


class TheChecks(TestCase):
    def found(self, **params: Any) -> list[str]:
        with override_settings(TASKS={"default": {"BACKEND": "windlass.django.WindlassBackend", **params}}):
            return [message.id for message in backend().check()]

    def test_a_project_that_is_right_hears_nothing(self) -> None:
        call_command("check")
        self.assertEqual(self.found(QUEUES=["default", "mail"]), [])

    def test_each_mistake_has_its_message(self) -> None:
        self.assertEqual(self.found(OPTIONS={"database": "other"}), ["windlass.E002"])
        self.assertEqual(self.found(QUEUES=["pull"]), ["windlass.E005"])
        self.assertEqual(self.found(OPTIONS={"pool": "*=2"}), ["windlass.E006"])
        self.assertEqual(self.found(OPTIONS={"pools": "nonsense"}), ["windlass.E006"])
        with self.modify_settings(INSTALLED_APPS={"remove": "windlass.django"}):
            self.assertEqual(self.found(), ["windlass.E001"])

    def test_options_that_cannot_work_are_refused(self) -> None:
        with self.assertRaises(InvalidInput):
            task_options(max_tries=3)  # type: ignore[call-arg]  # as a slip would be
        with self.assertRaisesMessage(InvalidInput, "queue_name"):
            task_options(lane="mail")
        with self.assertRaisesMessage(InvalidInput, "below @task"):
            task_options(max_attempts=2)(tasks.add)


class TheDashboard(TransactionTestCase):
    @classmethod
    def tearDownClass(cls) -> None:
        close()
        super().tearDownClass()

    def setUp(self) -> None:
        if is_in_memory():
            self.skipTest("the dashboard cannot reach a database in memory")

    def client_of(self, name: str, *permissions: str, **rights: bool) -> Client:
        user = User.objects.create(username=name, **rights)
        user.user_permissions.add(*(Permission.objects.get(codename=each) for each in permissions))
        client = Client(enforce_csrf_checks=True)
        client.force_login(user)
        return client

    def test_each_may_do_what_django_lets_them(self) -> None:
        call_command("migrate", verbosity=0)
        result = tasks.add.enqueue(1)
        number = parse_job_id(result.id)
        cancel = f"{QUEUE}/api/v1/jobs/{number}/cancel"
        login = Client().get(f"{QUEUE}/jobs")
        self.assertRedirects(login, f"/admin/login/?next={QUEUE}/jobs", fetch_redirect_response=False)
        self.assertEqual(self.client_of("nobody").get(f"{QUEUE}/jobs").status_code, 403)
        staff = self.client_of("staff", is_staff=True)
        page = staff.get(f"{QUEUE}/jobs")
        self.assertContains(page, f'href="{QUEUE}/jobs/{number}"')
        self.assertContains(page, "django:staff")
        csrf = {"x-csrf-token": staff.get(f"{QUEUE}/api/v1/session").json()["csrf"]}
        self.assertEqual(staff.post(cancel, content_type=JSON, headers=csrf).status_code, 403)
        operator = self.client_of("operator", "operate")
        self.assertEqual(operator.post(cancel, content_type=JSON).status_code, 403)
        csrf = {"x-csrf-token": operator.get(f"{QUEUE}/api/v1/session").json()["csrf"]}
        self.assertEqual(operator.post(cancel, content_type=JSON, headers=csrf).status_code, 200)
        self.assertEqual(operator.get(f"{QUEUE}/api/v1/audit").status_code, 403)
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        admin = self.client_of("admin", is_staff=True, is_superuser=True)
        audit = [(line["principal"], line["action"]) for line in admin.get(f"{QUEUE}/api/v1/audit").json()["audit"]]
        self.assertIn(("django:operator", "cancel"), audit)
        self.assertContains(admin.get("/admin/"), "/admin/windlass/jobs/")
        self.assertRedirects(admin.get(reverse("admin:windlass_jobs_changelist")), f"{QUEUE}/", fetch_redirect_response=False)
        events = admin.get(f"{QUEUE}/api/v1/events", headers=STREAM)
        self.assertIn(b"retry:", b"".join(events.streaming_content))
        self.assertEqual(Client().get(f"{QUEUE}/api/v1/jobs", headers={"authorization": "Bearer x"}).status_code, 401)
        self.assertEqual(Client().get(f"{QUEUE}/jobs", headers={"host": "elsewhere"}).status_code, 400)
        self.assertEqual(admin.post(f"{QUEUE}/logout", {"csrf": "x"}).status_code, 403)
        csrf = {"csrf": admin.get(f"{QUEUE}/api/v1/session").json()["csrf"]}
        self.assertRedirects(admin.post(f"{QUEUE}/logout", csrf), "/admin/login/", fetch_redirect_response=False)
        self.assertEqual(admin.get(f"{QUEUE}/jobs").status_code, 302)

    async def test_an_asgi_project_gets_events_as_they_come(self) -> None:
        client = AsyncClient()
        user = await User.objects.acreate(username="staff", is_staff=True)
        await client.aforce_login(user)
        page = await client.get(f"{QUEUE}/api/v1/jobs?limit=1")
        self.assertEqual(json.loads(page.content)["limit"], 1)
        events: Any = await client.get(f"{QUEUE}/api/v1/events", headers=STREAM)
        self.assertEqual(events.status_code, 200, events)
        parts = aiter(events.streaming_content)
        self.assertIn(b"retry:", await anext(parts))
        result = await tasks.add.aenqueue(1)
        told = b""
        async with asyncio.timeout(PATIENCE_S):
            while b"event: change" not in told:
                told += await anext(parts)
        await parts.aclose()
        self.assertTrue(result.id)
