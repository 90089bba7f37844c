"""The worker's log, which raises nothing."""

from __future__ import annotations

import logging
import traceback
from typing import Any


class WorkerLog(logging.LoggerAdapter[logging.Logger]):
    """Logs; what a filter of the application raises is printed to stderr, as logging prints the errors of its handlers.

    A line of the worker's own may never decide what happens to a job, to a slot or to the process.
    """

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Write a line under the name of the code that asked for it."""
        options["stacklevel"] = options.get("stacklevel", 1) + 1
        try:
            self.logger.log(level, msg, *args, **options)
        except Exception:  # noqa: BLE001 - there is nowhere left to log it
            if logging.raiseExceptions:
                traceback.print_exc()


log = WorkerLog(logging.getLogger("windlass.worker"))
