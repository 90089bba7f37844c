"""What may be changed on a job over HTTP, by our names and by the interval scheduler's."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from windlass.core.durations import parse_duration
from windlass.core.interval import IntervalChange
from windlass.core.job import MAX_TEXT, Edit
from windlass.core.payload import encode_object
from windlass.core.source import check_url
from windlass.errors import InvalidInput
from windlass.web.fields import Body, Instant
from windlass.web.job_forms import (
    MOST_BACKOFF_S,
    Attempts,
    CronText,
    Late,
    Length,
    Priority,
    Retries,
    SourceText,
    Unit,
    WebAddress,
    Zone,
    read_cadence,
    rule_fields,
)
from windlass.web.job_shape import CRAWL


class EditIn(Body):
    """The fields to change; those left out stay."""

    payload: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    description: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)] | None = None
    priority: Priority | None = None
    max_attempts: Attempts | None = None
    max_retries: Retries | None = None
    retry_backoff_seconds: Annotated[int, Field(ge=0, le=MOST_BACKOFF_S)] | None = None
    timeout: Length | None = None
    every: Length | None = None
    cron: CronText | None = None
    interval_minutes: Annotated[int, Field(ge=1)] | None = None
    interval_type: Unit | None = None
    schedule_time: CronText | None = None
    """Cron; the interval wins over it."""
    schedule_enabled: bool | None = None
    """False disables a recurring job, true enables it."""
    timezone: Zone | None = None
    fixed_rate: bool | None = None
    start_at: Instant | None = None
    misfire: Late | None = None
    url: WebAddress | None = None
    source_name: SourceText | None = None

    @property
    def has_source(self) -> bool:
        """Whether it changes what only a crawl has."""
        return self.url is not None or self.source_name is not None

    def check_task(self, task: str) -> None:
        """Refuse a source's fields for a task that has none."""
        field, value = ("url", self.url) if self.url is not None else ("source_name", self.source_name)
        if task != CRAWL:
            raise InvalidInput(field, value, f"only a job of task {CRAWL!r} has it; edit the payload")


def edit_of(body: EditIn) -> Edit:
    """Return what a body changes."""
    if body.max_attempts is not None and body.max_retries is not None:
        raise InvalidInput("max_retries", body.max_retries, "give max_attempts or max_retries, not both")
    if body.url is not None:
        check_url("url", body.url)
    source = {name: value for name in ("url", "source_name") if (value := getattr(body, name)) is not None}
    backoff = body.retry_backoff_seconds
    return Edit(
        payload=None if body.payload is None else encode_object(body.payload),
        metadata=None if body.metadata is None else encode_object(body.metadata, field="metadata"),
        description=body.description,
        priority=body.priority,
        max_attempts=body.max_attempts if body.max_retries is None else body.max_retries + 1,
        timeout=None if body.timeout is None else parse_duration(body.timeout, field="timeout"),
        retry_base=None if backoff is None else timedelta(seconds=backoff),
        rule=_rule(body) or None,
        payload_fields=source or None,
        is_enabled=body.schedule_enabled,
    )


def _rule(body: EditIn) -> dict[str, Any]:
    """Return which fields of the job's rule change."""
    fields = rule_fields(body)
    if body.interval_minutes is not None or (body.interval_type is not None and body.schedule_time is None):
        return {"interval": IntervalChange(body.interval_minutes, body.interval_type), **fields}
    cadence = read_cadence(body.every, body.schedule_time if body.cron is None else body.cron)
    return fields if cadence is None else {"cadence": cadence, "unit": None, **fields}
