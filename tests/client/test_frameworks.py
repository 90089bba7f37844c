"""What the extension of Flask and the lifespan of Starlette promise beside what their guides show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from flask import Flask, current_app
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from windlass import ConfigError, JobState, Windlass
from windlass.fastapi import WindlassDep, get_windlass
from windlass.flask import FlaskWindlass
from windlass.starlette import lifespan
from windlass.testing import fresh, run_all_sync


def test_each_run_is_inside_the_application_context_and_ends_it() -> None:
    jobs, web, ended = Windlass("sqlite://"), Flask("shop"), []
    FlaskWindlass(jobs, web)
    web.config["SENDER"] = "shop"

    @web.teardown_appcontext
    def teardown(error: BaseException | None) -> None:
        ended.append(type(error))

    @jobs.task
    def plain() -> str:
        return str(current_app.config["SENDER"])

    @jobs.task
    async def later() -> str:
        return str(current_app.config["SENDER"])

    @jobs.task(max_attempts=1)
    def fails() -> None:
        raise ValueError(current_app.config["SENDER"])

    with fresh(jobs):
        found = [task.enqueue_sync() for task in (plain, later)]
        failed = fails.enqueue_sync()
        run_all_sync(jobs)
        assert [job.result_sync(timeout=1) for job in found] == ["shop", "shop"]
        assert jobs.get_sync(failed).state is JobState.FAILED
    assert sorted(kind.__name__ for kind in ended) == ["NoneType", "NoneType", "ValueError"]


def test_settings_come_from_the_configuration_and_a_wrong_one_is_named() -> None:
    jobs, web = Windlass("sqlite://"), Flask("shop")
    web.config["WINDLASS_LEASE_SECONDS"] = 30
    FlaskWindlass(jobs).init_app(web)
    assert web.extensions["windlass"] is jobs
    assert jobs.settings.lease.total_seconds() == 30
    web.config["WINDLASS_LEESE_SECONDS"] = 30
    with pytest.raises(ConfigError, match="leese_seconds"):
        FlaskWindlass(Windlass("sqlite://"), web)


def test_without_an_application_a_run_says_what_to_type() -> None:
    jobs = Windlass("sqlite://")
    FlaskWindlass(jobs)

    @jobs.task(max_attempts=1)
    def plain() -> None: ...

    with fresh(jobs):
        job = plain.enqueue_sync()
        run_all_sync(jobs)
        assert "run `flask windlass worker`" in str(jobs.get_sync(job).last_error)


async def test_the_lifespan_opens_inside_of_ones_own_and_gives_its_state(tmp_path: Path) -> None:
    order: list[str] = []
    jobs = Windlass(f"sqlite:///{tmp_path / 'jobs.db'}")

    @jobs.lifespan
    async def resources() -> AsyncIterator[None]:
        order.append("worker begins")
        yield
        order.append("worker ends")

    @jobs.task
    async def double(number: int) -> int:
        return 2 * number

    @asynccontextmanager
    async def own(_: Any) -> AsyncIterator[dict[str, str]]:
        order.append("own begins")
        yield {"name": "shop"}
        order.append("own ends")

    async def answer(request: Request) -> PlainTextResponse:
        assert get_windlass(request) is jobs
        return PlainTextResponse(str(await (await double.enqueue(4)).result(timeout=30)))

    web = Starlette(routes=[Route("/", answer)], lifespan=lifespan(jobs, worker=True, around=own))
    async with web.router.lifespan_context(web) as state:
        assert state == {"name": "shop"}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(web), base_url="http://shop") as client:
            assert (await client.get("/")).text == "8"
    assert order == ["own begins", "worker begins", "worker ends", "own ends"]


async def test_the_dependency_is_replaced_in_tests_and_says_what_is_missing() -> None:
    web, jobs = FastAPI(), Windlass("sqlite://", name="other")

    @web.get("/")
    async def name(jobs: WindlassDep) -> str:
        return jobs.name

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(web), base_url="http://shop") as client:
        with pytest.raises(ConfigError, match="lifespan="):
            await client.get("/")
        web.dependency_overrides[get_windlass] = lambda: jobs
        assert (await client.get("/")).json() == "other"
