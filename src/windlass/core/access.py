"""Who may do what: roles, principals, and the tokens and sessions that stand for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from windlass.core.checks import check_text, check_wait
from windlass.core.job import MAX_NAME
from windlass.core.record import record
from windlass.core.source import check_line
from windlass.errors import InvalidInput

MAX_LANES = 100
TOKEN_PREFIX = "wdl_"  # noqa: S105 - what tokens begin with, so that people and scanners know one when they see it
_SECOND = timedelta(seconds=1)
PART = "/"
"""Stands between a worker's id and the name of one of its processes."""


class Role(StrEnum):
    """What a principal may do: each of the first four includes those before it, `worker` is apart."""

    VIEWER = "viewer"
    PRODUCER = "producer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"

    def includes(self, least: Role) -> bool:
        """Whether this role may do what asks for `least`."""
        return least in _INCLUDED[self]


_LADDER = (Role.VIEWER, Role.PRODUCER, Role.OPERATOR, Role.ADMIN)
_INCLUDED = {role: frozenset(_LADDER[: place + 1]) for place, role in enumerate(_LADDER)} | {
    Role.WORKER: frozenset({Role.WORKER})
}


def strongest(words: Iterable[object]) -> Role | None:
    """Return the role that includes most of those named; names that are no roles are ignored."""
    named = {word for word in words if isinstance(word, str)}
    return next((role for role in (*reversed(_LADDER), Role.WORKER) if role.value in named), None)


class Principal(NamedTuple):
    """The owner of a credential that was accepted; without a role it may do nothing."""

    name: str
    role: Role | None
    lanes: tuple[str, ...] | None = None
    """Which lanes a worker may serve; None is every lane."""
    worker: str | None = None
    """The id that a pull worker's leases carry."""
    csrf: str | None = None
    """What a browser must send along with every change; only sessions have it."""
    is_signed: bool = False
    """Whether the request itself was signed, so that its body must be the one that was meant."""

    def called(self, worker: str) -> Principal | None:
        """Return the principal as it calls itself: its own id, or one of its processes; None for another worker's id.

        What begins with a slash is the name of a process alone.
        """
        own = self.worker or self.name
        given = f"{own}{worker}" if worker.startswith(PART) else worker
        return self._replace(worker=given) if given == own or given.startswith(f"{own}{PART}") else None

    def may(self, least: Role) -> bool:
        """Whether the role allows what asks for `least`."""
        return self.role is not None and self.role.includes(least)


@record(kw_only=True)
class NewToken:
    """A token to be made; without `expires_in` it lives until it is revoked."""

    name: str
    role: Role
    lanes: tuple[str, ...] | None = None
    expires_in: timedelta | None = None
    worker: str | None = None
    """The id of the worker that it is for; left out, it is the name."""

    def __post_init__(self) -> None:
        """Refuse what no request could be checked against."""
        check_line("name", self.name, MAX_NAME)
        if not isinstance(self.role, Role):
            raise InvalidInput("role", self.role, f"must be one of {', '.join(Role)}")
        if self.lanes is not None:
            self._check_lanes(self.lanes)
        if self.expires_in is not None:
            check_wait("expires_in", self.expires_in, least=_SECOND)
        if self.worker is not None and self.role is not Role.WORKER:
            raise InvalidInput("worker", self.worker, "only a worker's token is bound to a worker")
        if self.role is Role.WORKER:
            self._check_worker("name" if self.worker is None else "worker", self.worker_id)

    @property
    def worker_id(self) -> str:
        """The id that its holder works under."""
        return self.name if self.worker is None else self.worker

    @staticmethod
    def _check_worker(field: str, worker: str) -> None:
        check_line(field, worker, MAX_NAME)
        # What comes after a slash distinguishes the processes of one worker.
        if PART in worker or not worker.isprintable():
            raise InvalidInput(field, worker, f"a worker's id has no {PART} in it; give another one as `worker`")

    def _check_lanes(self, lanes: tuple[str, ...]) -> None:
        if self.role is not Role.WORKER:
            raise InvalidInput("lanes", lanes, "only a worker's token is limited to lanes")
        if not 1 <= len(lanes) <= MAX_LANES:
            raise InvalidInput("lanes", lanes, f"must name 1 to {MAX_LANES} lanes; leave it out to allow every lane")
        for lane in lanes:
            check_text("lanes", lane, MAX_NAME)


@record
class Token:
    """A token as it is kept: its secret is not, only a digest that is never shown."""

    id: int
    name: str
    role: Role
    lanes: tuple[str, ...] | None
    created_by: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    seen_at: datetime | None
    is_live: bool
    """Neither revoked nor expired, in database time."""
    worker: str | None = None
    """The id of the worker that it is bound to; None for other roles."""

    @property
    def principal(self) -> str:
        """The name of its holder; no other token has it."""
        return f"token:{self.id}:{self.name}"[:MAX_NAME]


class Minted(NamedTuple):
    """A new token and its secret, which is shown this once."""

    token: Token
    secret: str


@record
class Session:
    """A browser that logged in."""

    principal: str
    role: Role
    csrf: str
    created_at: datetime
    expires_at: datetime


def digest_of(secret: str) -> str:
    """Return a digest of a secret; one round is enough for 256 random bits."""
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
