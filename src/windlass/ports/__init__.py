"""What everything above the store speaks."""

from __future__ import annotations

from windlass.ports.audit import Audit
from windlass.ports.backend import Backend
from windlass.ports.breakers import Breakers
from windlass.ports.chores import Chores
from windlass.ports.clock import Clock
from windlass.ports.crawls import Crawls
from windlass.ports.cron_migration import CronMigration
from windlass.ports.feeds import Feeds
from windlass.ports.gates import Gates
from windlass.ports.items import Items
from windlass.ports.lanes import Lanes
from windlass.ports.letters import Letters
from windlass.ports.pages import Pages
from windlass.ports.pruning import Pruning
from windlass.ports.reminders import Reminders
from windlass.ports.runs import Runs
from windlass.ports.schedules import Schedules
from windlass.ports.sessions import Sessions
from windlass.ports.settings import Settings
from windlass.ports.signatures import Signatures
from windlass.ports.sources import Sources
from windlass.ports.store import Store
from windlass.ports.tasks import Tasks
from windlass.ports.tokens import Tokens
from windlass.ports.wakeups import Wakeups
from windlass.ports.work import Renewals, Work
from windlass.ports.workers import Workers

__all__ = [
    "Audit",
    "Backend",
    "Breakers",
    "Chores",
    "Clock",
    "Crawls",
    "CronMigration",
    "Feeds",
    "Gates",
    "Items",
    "Lanes",
    "Letters",
    "Pages",
    "Pruning",
    "Reminders",
    "Renewals",
    "Runs",
    "Schedules",
    "Sessions",
    "Settings",
    "Signatures",
    "Sources",
    "Store",
    "Tasks",
    "Tokens",
    "Wakeups",
    "Work",
    "Workers",
]
