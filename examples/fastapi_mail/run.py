"""Signs two people up, one in vain, and shows that only the one who is kept gets mail. `--serve` runs the shop instead."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path


async def show() -> None:
    """Use the shop as a browser would."""
    import httpx2
    from app import jobs, web

    transport = httpx2.ASGITransport(web)
    async with web.router.lifespan_context(web), httpx2.AsyncClient(transport=transport, base_url="http://shop") as client:
        kept = await client.post("/customers", json={"email": "ann@example.org"})
        refused = await client.post("/customers", json={"email": "bob@example.invalid"})
        print("ann:", kept.status_code, "bob:", refused.status_code)
        print("result of the mail job:", await jobs.wait(kept.json()["job"], timeout="30s"))
        print("the dashboard sends to its login page:", (await client.get("/ops/jobs")).headers["location"])
        print("customers:", (await client.get("/customers")).json())
        found = await jobs.list()
        print("jobs:", [(job.task, job.state.value) for job in found.jobs])
        assert [job.task for job in found.jobs] == ["mail"], "a rolled back transaction leaves no job"


def main() -> None:
    """Choose a database, then show or serve."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("SHOP_DATABASE_URL", f"sqlite:///{Path(folder) / 'shop.db'}")
        if "--serve" in sys.argv[1:]:
            import uvicorn

            uvicorn.run("app:web", port=8000)
        else:
            asyncio.run(show())


if __name__ == "__main__":
    main()
