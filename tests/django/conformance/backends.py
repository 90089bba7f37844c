"""Windlass with what Django's tests ask their dummy backend for: the list of its results, and to forget them."""

from __future__ import annotations

import threading
from typing import Any

from django.db import connections

from windlass.core.ids import job_uuid, parse_job_id
from windlass.core.page import JobQuery
from windlass.django.backend import WindlassBackend
from windlass.django.tasks_api import TaskResultDoesNotExist


class Listed(WindlassBackend):
    """Lists what was enqueued since it was cleared."""

    cleared_at = 0

    @property
    def results(self) -> list[Any]:
        """The results, in the order they were enqueued; read on a thread, as the tests ask from coroutines too."""
        found: list[Any] = []

        def read() -> None:
            try:
                found.extend(self.read_results())
            finally:
                connections.close_all()

        thread = threading.Thread(target=read)
        thread.start()
        thread.join(60)
        return found

    def read_results(self) -> list[Any]:
        """Read them here, inside the transaction of this thread."""
        return [self.get_result(str(job_uuid(number))) for number in self._numbers() if number > Listed.cleared_at]

    def clear(self) -> None:
        """Forget them."""
        Listed.cleared_at = max(self._numbers(), default=0)

    def get_result(self, result_id: str) -> Any:
        """Read a result that was not forgotten."""
        if (parse_job_id(str(result_id)) or 0) <= Listed.cleared_at:
            raise TaskResultDoesNotExist(result_id)
        return super().get_result(result_id)

    def _numbers(self) -> list[int]:
        return sorted(job.id for job in self.client.list_sync(JobQuery(limit=500)).jobs)
