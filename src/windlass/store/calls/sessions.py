"""Sessions: opened, found by digest, closed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from windlass.core.access import Role, Session
from windlass.core.audit import Deed
from windlass.core.checks import check_text, check_wait
from windlass.core.job import MAX_NAME
from windlass.core.payload import encode_object
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

_PRUNED = 100
_SECOND = timedelta(seconds=1)
SHAPES |= dict.fromkeys(("open_session", "find_session"), Shape.of(Session))


def open_session(digest: str, principal: str, role: Role, *, csrf: str, lasts: timedelta) -> Call[Session]:
    """Let a browser in under the digest of its cookie; deletes some sessions that are over, as nothing else does."""
    check_text("principal", principal, MAX_NAME)
    check_wait("lasts", lasts, least=_SECOND)
    params = {"digest": digest, "principal": principal, "role": role.value, "csrf": csrf, "lasts": lasts}

    def steps(_: Means) -> Steps[Session]:
        yield Step("prune_sessions", {"limit": _PRUNED})
        return _session((yield Step("open_session", params))[0])

    return Call(steps, deed=_was_opened)


def find(digest: str) -> Call[Session | None]:
    """Find a session that is not over."""
    return single("find_session", {"digest": digest}, _one, is_read=True)


def close(digest: str) -> Call[bool]:
    """End a session; False when there is none."""
    return single("close_session", {"digest": digest}, bool)


def _one(found: Sequence[Row]) -> Session | None:
    return _session(found[0]) if found else None


def _session(row: Row) -> Session:
    principal, role, *rest = row
    return Session(principal, Role(role), *rest)


def _was_opened(session: Session) -> Deed:
    """Describe the login of a browser."""
    return Deed("log in", None, "done", encode_object({"principal": session.principal, "role": session.role.value}))
