"""The examples of the page about crawling, against a handbook on this machine."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.packs.crawl_site import html
from tests.support.local_site import Seen, Write, reply, serve
from tests.web.serving import Served, served
from tests.web.test_admin_docs import fits
from windlass import Windlass, packs
from windlass.cli.main import main
from windlass.core.access import Role

PAGE = (Path(__file__).parents[2] / "docs" / "crawl.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```http\n(\w+) (\S+)\n(.*?)```\n\n```json (\d+)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SITE = "https://handbook.example"
ANSWERS = {
    "/": (
        "Handbook",
        "Welcome aboard. ",
        '<a href="/windlass">The windlass</a> <a href="/capstan">The capstan</a> <a href="/lost">Lost</a>',
    ),
    "/windlass": ("The windlass", "It is there to lift the anchor.", ""),
    "/capstan": ("The capstan", "It stands upright.", ""),
}


async def answer(seen: Seen, write: Write) -> None:
    title, text, links = ANSWERS.get(seen.target, ("", "", ""))
    await write(reply(200, html(title, (), text + links), content_type="text/html") if title else reply(404))


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_every_example_does_what_it_shows(url: str) -> None:
    assert len(EXAMPLES) == PAGE.count("```http") == PAGE.count("```json")
    app = Windlass(url, allow_private_addresses=True, crawl_delay=0)
    packs.install(app, ["crawl"])
    async with serve(answer) as site, served(app) as web, app.working():
        here = site.url().rstrip("/")
        for method, path, body, status, expected in EXAMPLES:
            found = await _sent(web, method, path, body.replace(SITE, here))
            assert found.status_code == int(status), (method, path, found.text)
            assert fits(found.json(), json.loads(expected.replace(SITE, here))), (method, path, found.text)
            if path == "/api/v1/jobs":
                await _completed(web)
    said = ""
    for line in COMMANDS:
        program, *arguments = shlex.split(line)
        done = CliRunner().invoke(main, arguments, env={"WINDLASS_DATABASE_URL": url})
        said += done.output
        assert (program, done.exit_code) == ("windlass", 0), (line, done.output)
    assert "3 pages of handbook are deleted" in said


async def _sent(web: Served, method: str, path: str, body: str) -> Any:
    sent: dict[str, Any] = {"content": body, "headers": {"content-type": "application/json"}} if body else {}
    return await web.ask(method, path, **sent)


async def _completed(web: Served) -> None:
    async with asyncio.timeout(20):
        while (await web.ask("GET", "/api/v1/jobs/1", Role.VIEWER)).json()["state"] != "completed":  # noqa: ASYNC110 - another side
            await asyncio.sleep(0.02)


def test_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program in PROGRAMS:
        exec(compile(program, "docs/crawl.md", "exec"), {})
