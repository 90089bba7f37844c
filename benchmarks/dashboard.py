"""Measures the dashboard over a million jobs: first paint, weight, and what pages and open tabs cost database and server."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

# In place of this folder, whose modules have names of others.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.many_jobs import CHOICES, databases, fill
from benchmarks.process_costs import cpu_s
from tests.browser.pages import addresses
from tests.web.server_process import TOKEN, ServerProcess, running
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.store import sqlite
from windlass.store.postgres import Postgres

PAINTED = ("/", "/jobs")
ROUNDS = 5
DRAWN = 20
TABS = 20
GOALS = {"paint": 500.0, "weight": 150.0, "database": 20.0, "tabs": 10.0}
VISIT = """() => {
  const [page] = performance.getEntriesByType("navigation");
  // Without what its script asks for once it follows.
  const loaded = [page, ...performance.getEntriesByType("resource").filter((one) => one.initiatorType !== "fetch")];
  return [
    page.responseStart,
    performance.getEntriesByName("first-contentful-paint")[0].startTime,
    loaded.reduce((sum, one) => sum + one.transferSize, 0) / 1024,
  ];
}"""


@contextmanager
def timed_database(spent: list[float]) -> Iterator[None]:
    """Add up the seconds that calls of the database take."""
    step, postgres = sqlite._run_step, Postgres.run

    def run_step(connection: Any, texts: Any, asked: Any) -> Any:
        began = time.perf_counter()
        try:
            return step(connection, texts, asked)
        finally:
            spent.append(time.perf_counter() - began)

    async def run(self: Postgres, call: Any) -> Any:
        began = time.perf_counter()
        try:
            return await postgres(self, call)
        finally:
            spent.append(time.perf_counter() - began)

    sqlite._run_step = run_step  # type: ignore[assignment]  # its parameters have other names
    Postgres.run = run  # type: ignore[method-assign]  # only to measure
    try:
        yield
    finally:
        sqlite._run_step = step
        Postgres.run = postgres  # type: ignore[method-assign]  # as above


async def database_ms(url: str) -> dict[str, float]:
    """Measure what a refresh of each page costs the database, after a first one."""
    spent: list[float] = []
    found: dict[str, float] = {}
    async with served(Windlass(url)) as web:
        for path in paths():
            await _drawn(web, path)
            costs = []
            for _ in range(ROUNDS):
                # Past the moment for which a look at everything is shared.
                await asyncio.sleep(1.1)
                with timed_database(spent):
                    spent.clear()
                    await _drawn(web, path)
                    costs.append(sum(spent) * 1000)
            found[path] = statistics.median(costs)
    return found


async def _drawn(web: Served, path: str) -> None:
    answer = await web.ask("GET", path, Role.ADMIN, headers={"accept": "text/html"})
    assert answer.status_code in {200, 404}, (path, answer.text)


def paths() -> list[str]:
    """Return every page; those of a single thing show one of the million."""
    nouns = ("alerts", "breakers", "correlations", "dead", "items", "lanes", "recurring", "tasks", "workers")
    names = dict.fromkeys(nouns, "1") | {"jobs": "93", "tasks": "task-1", "lanes": "lane-1"}
    return addresses(names)


class Visit(NamedTuple):
    """What a browser measured of a page: until its first byte and its first contentful paint, and all it loaded."""

    first_byte_ms: float
    paint_ms: float
    weight_kb: float


class Visitor:
    """A browser that looks at a server."""

    def __init__(self, browser: Browser, server: ServerProcess) -> None:
        """Look at `server`."""
        self._browser = browser
        self._server = server
        self._origin = f"http://127.0.0.1:{server.port}"

    @contextmanager
    def _opened(self, path: str) -> Iterator[Page]:
        with self._browser.new_context(viewport={"width": 1360, "height": 820}) as context:
            assert context.request.post(f"{self._origin}/login", form={"token": TOKEN}).ok
            page = context.new_page()
            page.goto(self._origin + path)
            page.wait_for_selector("#live[data-is=on]")
            yield page

    def visit(self, path: str) -> Visit:
        """Measure a browser that has nothing cached."""
        found = []
        for _ in range(ROUNDS):
            with self._opened(path) as page:
                found.append(Visit(*page.evaluate(VISIT)))
        return Visit(*map(statistics.median, zip(*found, strict=True)))

    def page_cpu_ms(self, path: str) -> float:
        """Measure the server's processor time for a page, which does not depend on what else the machine does."""
        with self._opened("/reference") as page:
            used = cpu_s(self._server.process.pid)
            for _ in range(DRAWN):
                # Past the moment for which a look at everything is shared.
                time.sleep(0.6)
                assert page.request.get(self._origin + path).ok
            return (cpu_s(self._server.process.pid) - used) / DRAWN * 1000

    def cpu_share(self, path: str, seconds: float) -> float:
        """Measure how much of a core the server uses while tabs are open and nothing happens, in percent."""
        pid = self._server.process.pid
        with ExitStack() as tabs:
            for _ in range(TABS):
                tabs.enter_context(self._opened(path))
            time.sleep(2)
            began, used = time.monotonic(), cpu_s(pid)
            time.sleep(seconds)
            return (cpu_s(pid) - used) / (time.monotonic() - began) * 100


def told(what: str, value: float, unit: str, goal: float) -> bool:
    """Print a measure beside its goal; returns whether it is met."""
    print(f"  {what:<44} {value:>8.1f} {unit:<14} goal < {goal:g}  {'ok' if value < goal else 'MISSED'}", flush=True)
    return value < goal


def measure(name: str, url: str, folder: Path, *, rows: int, seconds: float) -> bool:
    """Measure everything on one database."""
    fill(name, url, rows)
    kept = [told(f"database time of {path}", ms, "ms", GOALS["database"]) for path, ms in asyncio.run(database_ms(url)).items()]
    with running(folder, WINDLASS_DATABASE_URL=url) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        visitor = Visitor(browser, server)
        for path in PAINTED:
            visit = visitor.visit(path)
            print(f"  first byte of {path:<30} {visit.first_byte_ms:>8.1f} ms")
            print(f"  server's CPU time for {path:<22} {visitor.page_cpu_ms(path):>8.1f} ms")
            kept += [told(f"first paint of {path}", visit.paint_ms, "ms", GOALS["paint"])]
            kept += [told(f"all that {path} loads", visit.weight_kb, "KB", GOALS["weight"])]
        for path in PAINTED:
            share = visitor.cpu_share(path, seconds)
            kept += [told(f"server, {TABS} idle tabs of {path}", share, "% of a core", GOALS["tabs"])]
    return all(kept)


def main() -> int:
    """Measure on the databases that were chosen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=CHOICES, default="sqlite")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long tabs are watched (%(default)s)")
    chosen = parser.parse_args()
    if shutil.which("chromium") is None:
        sys.exit("dashboard: there is no chromium here; on Debian `apt-get install chromium` brings it")
    with tempfile.TemporaryDirectory() as place, databases(chosen.database, Path(place)) as urls:
        kept = [measure(name, url, Path(place), rows=chosen.rows, seconds=chosen.seconds) for name, url in urls.items()]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
