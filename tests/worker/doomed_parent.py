"""A worker that has a child at work until somebody kills it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from tests.worker.test_processes import APP, a_job
from windlass.worker.processes import ChildRunner


async def main(task: str, **payload: Any) -> None:
    runner = ChildRunner(APP)

    async def handle(_verb: str, _arguments: Mapping[str, Any]) -> None:
        print(runner.pid, flush=True)

    await runner.run(a_job(task, **payload), handle=handle)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], **json.loads(sys.argv[2])))
