"""Windlass, a job queue on the database you already have: SQLite or PostgreSQL."""

from typing import TYPE_CHECKING

from windlass.core.late_names import late_names as _late_names

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from windlass.app import Windlass as Windlass
    from windlass.client.handle import EnqueuedJob as EnqueuedJob
    from windlass.client.handle import TaskCall as TaskCall
    from windlass.client.task import Task as Task
    from windlass.config import Settings as Settings
    from windlass.core.audit import AuditFilter as AuditFilter
    from windlass.core.breaker import BreakerSpec as BreakerSpec
    from windlass.core.cadence import Cron as Cron
    from windlass.core.cadence import Every as Every
    from windlass.core.cadence import Recurrence as Recurrence
    from windlass.core.current import detached as detached
    from windlass.core.filter import JobFilter as JobFilter
    from windlass.core.filter import StateFilter as StateFilter
    from windlass.core.hooks import EndEvent as EndEvent
    from windlass.core.hooks import EnqueueEvent as EnqueueEvent
    from windlass.core.hooks import StartEvent as StartEvent
    from windlass.core.item import Item as Item
    from windlass.core.job import DeadLetter as DeadLetter
    from windlass.core.job import Enqueued as Enqueued
    from windlass.core.job import Execution as Execution
    from windlass.core.job import Job as Job
    from windlass.core.job import JobState as JobState
    from windlass.core.job import NewJob as NewJob
    from windlass.core.job import OnConflict as OnConflict
    from windlass.core.job import RunReason as RunReason
    from windlass.core.job import RunStatus as RunStatus
    from windlass.core.job import UniqueScope as UniqueScope
    from windlass.core.job import WaitReason as WaitReason
    from windlass.core.letter_page import LetterQuery as LetterQuery
    from windlass.core.letters import LetterFilter as LetterFilter
    from windlass.core.page import JobQuery as JobQuery
    from windlass.core.page import Page as Page
    from windlass.core.preview import preview as preview
    from windlass.core.reminder import NewReminder as NewReminder
    from windlass.core.retry import RetryPolicy as RetryPolicy
    from windlass.core.retry import RetrySpec as RetrySpec
    from windlass.core.signals import Cancel as Cancel
    from windlass.core.signals import Discard as Discard
    from windlass.core.signals import Retry as Retry
    from windlass.core.signals import Snooze as Snooze
    from windlass.core.source import NewSource as NewSource
    from windlass.errors import BreakerOpen as BreakerOpen
    from windlass.errors import ConfigError as ConfigError
    from windlass.errors import DuplicateJob as DuplicateJob
    from windlass.errors import InvalidInput as InvalidInput
    from windlass.errors import InvalidPayload as InvalidPayload
    from windlass.errors import InvalidTransition as InvalidTransition
    from windlass.errors import JobCancelled as JobCancelled
    from windlass.errors import JobFailed as JobFailed
    from windlass.errors import JobNotFound as JobNotFound
    from windlass.errors import LeaseLost as LeaseLost
    from windlass.errors import ScheduleTaken as ScheduleTaken
    from windlass.errors import SchemaError as SchemaError
    from windlass.errors import SlotTaken as SlotTaken
    from windlass.errors import StoreError as StoreError
    from windlass.errors import StoreUnavailable as StoreUnavailable
    from windlass.errors import UnknownTask as UnknownTask
    from windlass.errors import WaitTimeout as WaitTimeout
    from windlass.errors import WindlassError as WindlassError
    from windlass.store.sqlite_library import sqlite_driver as sqlite_driver
    from windlass.worker.context import JobContext as JobContext
    from windlass.worker.middleware import HandlerCall as HandlerCall

_HOMES = {
    "windlass.app": ("Windlass",),
    "windlass.client.handle": ("EnqueuedJob", "TaskCall"),
    "windlass.client.task": ("Task",),
    "windlass.config": ("Settings",),
    "windlass.core.audit": ("AuditFilter",),
    "windlass.core.breaker": ("BreakerSpec",),
    "windlass.core.cadence": ("Cron", "Every", "Recurrence"),
    "windlass.core.current": ("detached",),
    "windlass.core.filter": ("JobFilter", "StateFilter"),
    "windlass.core.hooks": ("EndEvent", "EnqueueEvent", "StartEvent"),
    "windlass.core.item": ("Item",),
    "windlass.core.job": (
        "DeadLetter",
        "Enqueued",
        "Execution",
        "Job",
        "JobState",
        "NewJob",
        "OnConflict",
        "RunReason",
        "RunStatus",
        "UniqueScope",
        "WaitReason",
    ),
    "windlass.core.letter_page": ("LetterQuery",),
    "windlass.core.letters": ("LetterFilter",),
    "windlass.core.page": ("JobQuery", "Page"),
    "windlass.core.preview": ("preview",),
    "windlass.core.reminder": ("NewReminder",),
    "windlass.core.retry": ("RetryPolicy", "RetrySpec"),
    "windlass.core.signals": ("Cancel", "Discard", "Retry", "Snooze"),
    "windlass.core.source": ("NewSource",),
    "windlass.errors": (
        "BreakerOpen",
        "ConfigError",
        "DuplicateJob",
        "InvalidInput",
        "InvalidPayload",
        "InvalidTransition",
        "JobCancelled",
        "JobFailed",
        "JobNotFound",
        "LeaseLost",
        "ScheduleTaken",
        "SchemaError",
        "SlotTaken",
        "StoreError",
        "StoreUnavailable",
        "UnknownTask",
        "WaitTimeout",
        "WindlassError",
    ),
    "windlass.store.sqlite_library": ("sqlite_driver",),
    "windlass.worker.context": ("JobContext",),
    "windlass.worker.middleware": ("HandlerCall",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604 - strings they are; type checkers read the imports above

# So that `import windlass` costs next to nothing.
__getattr__, __dir__ = _late_names(__name__, _HOME_OF)
