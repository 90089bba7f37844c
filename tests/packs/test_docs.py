"""The examples of the packs' pages, run as they stand."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.packs.notify_apps import notifying
from tests.support.local_mail import mail_server
from tests.support.local_site import Seen, Write, reply, serve
from tests.web.serving import served
from tests.web.test_admin_docs import fits
from windlass import Windlass, packs
from windlass.testing import run_all

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"```http\n(\w+) (\S+)\n(.*?)```\n\n```json (\d+)\n(.*?)```", re.DOTALL)


def program(page: str, mark: str = "") -> str:
    found = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return "\n".join(text for wanted, text in found if wanted == mark)


async def run(page: str, folder: Path) -> str:
    script = folder / "page.py"
    script.write_text(program(page), encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        script,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    return said.decode()


async def test_the_examples_about_packs_run(tmp_path: Path) -> None:
    said = await run("packs.md", tmp_path)
    assert len(said.splitlines()) == 4


def test_every_pack_is_on_the_page() -> None:
    page = (DOCS / "packs.md").read_text(encoding="utf-8")
    assert [name for name in packs.PACKS if f"| `{name}` |" not in page] == []


async def test_the_mails_of_the_page_arrive(tmp_path: Path) -> None:
    await run("notify.md", tmp_path)
    async with mail_server() as box:
        app = Windlass(f"sqlite:///{tmp_path / 'shop.db'}", mail_from="shop@example.org", smtp_url=box.url)
        packs.install(app, ["notify"])
        async with app:
            await run_all(app)
        assert sorted(mail["Subject"] for mail in box.mails) == ["Reminder: taxes", "Welcome, Ada", "Your order"]


async def test_a_receiver_tells_our_webhooks_as_the_page_says(tmp_path: Path) -> None:
    scope: dict[str, Any] = {}
    exec(program("notify.md", "receiver"), scope)
    is_ours: Callable[[str, dict[str, str], bytes, float], bool] = scope["is_ours"]

    async def take(_seen: Seen, write: Write) -> None:
        await write(reply(200))

    secret = "a secret of the shop and its partner"
    async with serve(take) as site, notifying(tmp_path, webhook_secret=secret) as app:
        await app.enqueue("webhook", {"url": site.url(), "event": "order.paid", "data": {"order": 7}})
        await run_all(app)
        [seen] = site.seen
        headers = {name.title(): value for name, value in seen.headers.items()}
        now = float(headers["Webhook-Timestamp"])
        assert is_ours(secret, headers, seen.body, now)
        assert not is_ours(secret, headers, seen.body + b" ", now)
        assert not is_ours(secret, headers | {"Webhook-Id": "msg_other"}, seen.body, now)
        assert not is_ours(secret, headers, seen.body, now + 301)
        assert not is_ours("another secret of somebody else", headers, seen.body, now)


async def test_every_request_of_the_page_is_answered_as_shown(tmp_path: Path) -> None:
    page = (DOCS / "notify.md").read_text(encoding="utf-8")
    examples = EXAMPLE.findall(page)
    assert len(examples) == page.count("```http")
    async with served(notifying(tmp_path)) as web:
        for method, path, body, status, expected in examples:
            sent = {"content": body, "headers": {"content-type": "application/json"}} if body else {}
            answer = await web.ask(method, path, **sent)
            assert answer.status_code == int(status), (method, path, answer.text)
            assert fits(answer.json(), json.loads(expected)), (method, path, answer.text)


@pytest.mark.parametrize(
    "name", ["WINDLASS_SMTP_URL", "WINDLASS_MAIL_FROM", "WINDLASS_MAIL_TEMPLATES", "WINDLASS_WEBHOOK_SECRET"]
)
def test_every_setting_is_on_the_page(name: str) -> None:
    assert f"| `{name}` |" in (DOCS / "notify.md").read_text(encoding="utf-8")
