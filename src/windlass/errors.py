"""Every error Windlass raises.

```
WindlassError
├── ConfigError               a setting, URL or environment variable is wrong
├── InvalidInput              bad value from a caller; names the field and the value (a ValueError)
│   └── InvalidPayload        a payload, result or metadata that is not strict JSON
├── JobNotFound
├── ExecutionNotFound
├── DeadLetterNotFound
├── InvalidTransition         a move the state table does not have; names both states
├── LeaseLost                 the token is no longer the one on the row
├── DuplicateJob              on_conflict="reject" met a holder of the key
├── SlotTaken                 an operator's retry into a unique slot that another job holds
└── StoreError
    ├── StoreUnavailable      the database cannot be reached or is busy; trying again is right
    ├── StoreRefused          the database refused the statement (constraint, bad text); trying again is not
    │   └── StoreConflict     a unique key was taken between look and write; the whole call may be tried again
    └── SchemaError           the tables are missing, too old, too new or edited
```
"""

from __future__ import annotations

_SHOWN = 80


def shown(value: object) -> str:
    """Render a value for a message, short enough for one log line."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a value whose repr fails must not hide the error it is shown in
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class WindlassError(Exception):
    """Root of all errors raised by Windlass."""


class ConfigError(WindlassError):
    """A setting is missing, unknown or out of range."""


class InvalidInput(WindlassError, ValueError):
    """A caller's value is refused; nothing was written."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"{field}: {reason} (got {shown(value)})")
        self.field = field
        self.value = value
        self.reason = reason


class InvalidPayload(InvalidInput):
    """A document is not strict JSON, too large or too deep."""


class JobNotFound(WindlassError):
    """No job has this number."""

    def __init__(self, job_id: object) -> None:
        super().__init__(f"job {shown(job_id)} not found")
        self.job_id = job_id


class ExecutionNotFound(WindlassError):
    """The job has no such run, or no longer."""

    def __init__(self, job_id: int, number: int) -> None:
        super().__init__(f"job {job_id} has no execution {number}")
        self.job_id = job_id
        self.number = number


class DeadLetterNotFound(WindlassError):
    """No dead letter has this number."""

    def __init__(self, letter_id: int) -> None:
        super().__init__(f"dead letter {shown(letter_id)} not found")
        self.letter_id = letter_id


class InvalidTransition(WindlassError):
    """The state table has no such move."""

    def __init__(self, job_id: int, move: str, state: str, target: str) -> None:
        super().__init__(f"cannot {move} job {job_id}: {state} → {target} is not a legal move")
        self.job_id = job_id
        self.move = move
        self.state = state
        self.target = target


class LeaseLost(WindlassError):
    """The caller no longer holds the job; nothing was changed."""

    def __init__(self, job_id: int) -> None:
        super().__init__(f"the lease on job {job_id} is held by somebody else or has ended")
        self.job_id = job_id


class DuplicateJob(WindlassError):
    """The unique key is taken and the caller asked to be refused."""

    def __init__(self, task: str, key: str, holder: int) -> None:
        super().__init__(f"task {task!r} already has job {holder} with unique key {shown(key)}")
        self.task = task
        self.key = key
        self.holder = holder


class SlotTaken(WindlassError):
    """Another job holds the unique slot this one would come back to."""

    def __init__(self, job_id: int, holder: int) -> None:
        super().__init__(f"job {job_id} cannot come back: job {holder} holds its unique key")
        self.job_id = job_id
        self.holder = holder


class StoreError(WindlassError):
    """The database answered with an error."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, is shutting down or stayed locked."""


class StoreRefused(StoreError):
    """The database refused this statement and would refuse it again."""


class StoreConflict(StoreRefused):
    """A rival took a unique key between this call's look and its write."""


class SchemaError(StoreError):
    """The schema does not fit this version of Windlass."""
