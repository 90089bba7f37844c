"""Windlass as the Tasks backend of a Django project."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from windlass.core.late_names import late_names as _late_names

if TYPE_CHECKING:
    from windlass.django.backend import WindlassBackend as WindlassBackend
    from windlass.django.options import task_options as task_options

# Django opens SQLite files with the standard library's driver, and a second copy of SQLite in the same process can corrupt them.
# Children inherit it. Another driver for Django is set in the environment.
os.environ.setdefault("WINDLASS_SQLITE_DRIVER", "sqlite3")

_HOME_OF = {"WindlassBackend": ".backend", "task_options": ".options"}

# Django loads this module before its own applications are ready.
__getattr__, __dir__ = _late_names(__name__, _HOME_OF)
