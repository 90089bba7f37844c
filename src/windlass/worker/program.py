"""What a worker runs: an application's tasks and what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windlass.core.hooks import Hooks
from windlass.core.retry import PROFILES, Profile
from windlass.core.task import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The code of one application, as far as a worker needs it."""

    registry: Registry
    hooks: Hooks = field(default_factory=Hooks)
    profiles: Mapping[str, Profile] = field(default_factory=lambda: PROFILES)
    """What jobs' rows leave open about retries."""
    state: Any = None
    """What handlers see as `ctx.state`."""
    target: str | None = None
    """Where a child process finds the application: `module:attribute`."""
