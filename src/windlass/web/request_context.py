"""One request with its principal, as handlers see it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from fastapi import Request

from windlass.app import Windlass
from windlass.client.operations import Operator
from windlass.core.access import Principal
from windlass.core.audit import Actor
from windlass.core.job import NewJob
from windlass.core.traceparent import read_header

if TYPE_CHECKING:
    from windlass.web.server import Server

KEY = "windlass"
PRINCIPAL = "windlass.principal"
"""The key of the scope under which an application around the server puts the principal; no request can set it."""
ANONYMOUS = Principal("anonymous", None)


class RequestContext:
    """A request that was let in."""

    def __init__(
        self,
        server: Server,
        principal: Principal,
        request_id: str,
        address: str,
        *,
        base: str,
        traceparent: bytes | None = None,
    ) -> None:
        """Belong to `server`, which is mounted below the path `base`."""
        self.server = server
        self.principal = principal
        self.request_id = request_id
        self.address = address
        self.base = base
        self._traceparent = traceparent

    @property
    def app(self) -> Windlass:
        """The application, whose changes are not audited: for reads and enqueues."""
        return self.server.app

    @property
    def reader(self) -> Operator:
        """The application's verbs for costly reads, which end when they take too long."""
        return self.server.reader

    def traced(self, job: NewJob) -> NewJob:
        """Link the runs of a new job to the trace that this request is part of; those of a schedule are not caused by it."""
        if self._traceparent is not None and job.recurrence is None:
            job.traceparent = read_header(self._traceparent.decode("latin-1"))
        return job

    @cached_property
    def operator(self) -> Operator:
        """The application's verbs with their changes audited as the principal's."""
        return self.app.acting(Actor(self.principal.name, self.request_id))


def context_of(request: Request) -> RequestContext:
    """Return the context of the request a handler was called for."""
    return cast("RequestContext", request.scope[KEY])


def address_of(request: Request) -> str:
    """Return the web address of the server, without a slash at its end: the public one, or the one it was asked at."""
    return context_of(request).app.settings.public_url or str(request.base_url).rstrip("/")


def reader_of(request: Request) -> Operator:
    """Return the application's verbs for costly reads, which end when they take too long."""
    return context_of(request).reader


def operator_of(request: Request) -> Operator:
    """Return the application's verbs with their changes audited as the caller's."""
    return context_of(request).operator
