"""What a job is made of over HTTP: our own form, and the interval scheduler's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from windlass.app import Windlass
from windlass.client.options import JobOptions
from windlass.core.cadence import Cadence, Every, Misfire, Recurrence, parse_cadence
from windlass.core.durations import parse_duration
from windlass.core.interval import IntervalForm
from windlass.core.item import MAX_FIELDS
from windlass.core.job import MAX_ATTEMPTS, MAX_KEY, MAX_NAME, MAX_SCHEDULE_NAME, NewJob
from windlass.core.record import shaped
from windlass.core.retry import RetrySpec
from windlass.core.source import MAX_SOURCE_NAME, MAX_URL, NewSource, check_url, new_source
from windlass.errors import InvalidInput
from windlass.web.errors import BadBody
from windlass.web.fields import LINE, Body, Instant, Name
from windlass.web.job_shape import CRAWL

MOST_BACKOFF_S = 86_400 * 365


Length = Annotated[str, StringConstraints(min_length=1, max_length=100)] | Annotated[float, Field(ge=0)]
"""Seconds, or text such as `30s`, `1.5h`, `1h30m`."""
Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY)]
Priority = Annotated[int, Field(ge=0, le=100)]
Attempts = Annotated[int, Field(ge=1, le=MAX_ATTEMPTS)]
Retries = Annotated[int, Field(ge=0, le=MAX_ATTEMPTS - 1)]
CronText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SCHEDULE_NAME)]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
ScheduleName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SCHEDULE_NAME, pattern=LINE)]
SourceText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SOURCE_NAME, pattern=LINE)]
WebAddress = Annotated[
    str, StringConstraints(min_length=8, max_length=MAX_URL, pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[^\x00-\x20\x7f-\x9f]+$")
]
Unit = Literal["minutes", "hours", "days"]
Late = Annotated[Misfire, Field(strict=False)]
"""What is done about times that passed more than a minute ago: one run for all of them, none, or each."""


class JobIn(Body):
    """A job of any task; with `every` or `cron` it comes back."""

    task: Name
    payload: dict[str, Any] | None = None
    lane: Name | None = None
    priority: Priority | None = None
    run_at: Instant | None = None
    delay: Length | None = None
    max_attempts: Attempts | None = None
    max_retries: Retries | None = None
    timeout: Length | None = None
    subject: Key | None = None
    name: ScheduleName | None = None
    """A recurring job's own name: no two have the same."""
    every: Length | None = None
    cron: CronText | None = None
    timezone: Zone | None = None
    fixed_rate: bool | None = None
    start_at: Instant | None = None
    misfire: Late | None = None
    unique_key: Key | None = None
    unique_scope: Literal["pending", "active", "forever"] | None = None
    on_conflict: Literal["ignore", "replace", "rerun", "reject"] | None = None
    correlation_id: Key | None = None
    target_count: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    item_key: Annotated[list[Name], Field(min_length=1, max_length=MAX_FIELDS)] | None = None
    collection: Name | None = None
    metadata: dict[str, Any] | None = None


class CrawlIn(Body):
    """The interval scheduler's job: a crawl of a url, once or every so often. The source is kept too."""

    url: WebAddress
    source_id: SourceText | None = None
    """Absent: the name, else the host of the url."""
    source_name: SourceText | None = None
    interval_minutes: Annotated[int, Field(ge=1)] | None = None
    """How many of `interval_type`."""
    interval_type: Unit | None = None
    schedule_time: Annotated[str, StringConstraints(max_length=MAX_SCHEDULE_NAME)] | None = None
    """Cron; the interval wins over it."""
    schedule_enabled: bool | None = None
    start_at: Instant | None = None
    fixed_rate: bool | None = None
    timezone: Zone | None = None
    max_retries: Retries | None = None
    retry_backoff_seconds: Annotated[int, Field(ge=0, le=MOST_BACKOFF_S)] | None = None
    metadata: dict[str, Any] | None = None
    lane: Name | None = None
    priority: Priority | None = None


def read_form(value: Any) -> JobIn | CrawlIn:
    """Read a body, by which form it has; raises what FastAPI raises for one that does not fit."""
    if isinstance(value, dict) and not value.keys() & {"task", "url"}:
        raise InvalidInput("task", None, "is required, or url for a crawl")
    kind = JobIn if isinstance(value, dict) and "task" in value else CrawlIn
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise BadBody(error, kind, value) from None


async def native_job(body: JobIn, app: Windlass, by: str) -> NewJob:
    """Describe the job that our own form means; raises UnknownTask where no process has declared its task."""
    options = {name: value for name in _OPTIONS if (value := getattr(body, name)) is not None}
    if body.max_retries is not None:
        if body.max_attempts is not None:
            raise InvalidInput("max_retries", body.max_retries, "give max_attempts or max_retries, not both")
        options["max_attempts"] = body.max_retries + 1
    job = await app.described(body.task, body.payload or {}, {**options, "created_by": by})
    rule = read_rule(body)
    return job if rule is None and body.name is None else _recurring(job, body, rule, options)


_OPTIONS = tuple(name for name in JobOptions.__annotations__ if name in JobIn.model_fields)


def _recurring(job: NewJob, body: JobIn, rule: Recurrence | None, options: Mapping[str, Any]) -> NewJob:
    if rule is None:
        raise InvalidInput("name", body.name, "goes with every or cron")
    # What makes one-shot jobs of the task unique is not a schedule's.
    return replace(job, name=body.name, recurrence=rule, unique_key=options.get("unique_key"))


def read_rule(body: Any) -> Recurrence | None:
    """Read when something repeats; None where the body has neither `every` nor `cron`."""
    cadence = read_cadence(body.every, body.cron)
    given = rule_fields(body)
    if cadence is None:
        for name, value in given.items():
            raise InvalidInput(name, value, "goes with every or cron")
        return None
    return Recurrence(cadence=cadence, **given)


def rule_fields(body: Any) -> dict[str, Any]:
    """Return what a body has of a rule beside its cadence."""
    names = ("timezone", "fixed_rate", "start_at", "misfire")
    return {name: value for name in names if (value := getattr(body, name, None)) is not None}


def read_cadence(every: str | float | None, cron: str | None) -> Cadence | None:
    """Read a period or cron fields, not both."""
    if every is not None and cron is not None:
        raise InvalidInput("cron", cron, "give every or cron, not both")
    try:
        if every is not None:
            return Every(parse_duration(every, field="every"))
        return None if cron is None else parse_cadence(cron)
    except InvalidInput as error:
        # The rules below call it a cadence; its sender does not.
        raise InvalidInput("cron" if every is None else "every", every or cron, error.reason) from None


def crawl_source(body: CrawlIn) -> NewSource:
    """Describe the source of the interval scheduler's form."""
    check_url("url", body.url)
    return new_source(body.url, ("source_id", body.source_id), ("source_name", body.source_name))


def crawl_job(body: CrawlIn, source: NewSource, app: Windlass, by: str) -> NewJob:
    """Describe the job that the interval scheduler's form means; its task counts as known."""
    backoff = body.retry_backoff_seconds
    options = {
        "subject": source.id,
        "retry": RetrySpec(profile="interval", base=None if backoff is None else timedelta(seconds=backoff)),
        "max_attempts": None if body.max_retries is None else body.max_retries + 1,
        "metadata": body.metadata,
        "lane": body.lane,
        "priority": body.priority,
        "created_by": by,
    }
    payload = {"source_id": source.id, "source_name": source.name, "url": body.url}
    job, _ = app.describe(CRAWL, payload, {name: value for name, value in options.items() if value is not None})
    return replace(job, recurrence=_interval_form(body).recurrence())


def _interval_form(body: CrawlIn) -> IntervalForm:
    if body.interval_minutes is None and not body.schedule_time:
        for name, value in rule_fields(body).items():
            raise InvalidInput(name, value, "goes with interval_minutes or schedule_time")
    return shaped(IntervalForm, body, fixed_rate=bool(body.fixed_rate), timezone=body.timezone or "UTC")
