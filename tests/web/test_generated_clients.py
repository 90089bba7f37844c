"""Clients that generators make from our document talk to a real server."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.support.stores import migrate_sqlite
from tests.web.serving import listening
from tests.web.test_web_tokens import SECRET, signed
from windlass import Windlass

GENERATOR = Path(sys.executable).with_name("openapi-python-client")
PACKAGES = Path(__file__).parents[2] / ".dev" / "typescript"
BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}


class Target(NamedTuple):
    url: str
    token: str
    document: dict[str, Any]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    migrate_sqlite(tmp_path / "windlass.db")
    app = Windlass(f"sqlite:///{tmp_path / 'windlass.db'}", jwt_secret=SECRET, accept_unknown=True)
    with listening(app) as port:
        url, token = f"http://127.0.0.1:{port}", signed(role="admin")
        answer = httpx2.get(f"{url}/openapi.json", headers={"authorization": f"Bearer {token}"}, timeout=60)
        yield Target(url, token, answer.json())


def bounds(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from bounds(each)
    elif isinstance(value, dict):
        yield from (found for key, found in value.items() if key in BOUNDS and not isinstance(found, dict))
        for each in value.values():
            yield from bounds(each)


def test_bounds_are_integers_and_bodies_that_may_be_left_out_are_references(target: Target) -> None:
    found = list(bounds(target.document))
    assert len(found) > 100
    assert all(isinstance(bound, int) for bound in found)
    assert 2**63 - 1 in found
    bodies = [
        made["requestBody"] for methods in target.document["paths"].values() for made in methods.values() if "requestBody" in made
    ]
    optional = [body for body in bodies if not body["required"]]
    assert len(optional) > 4
    assert all([*body["content"]["application/json"]["schema"]] == ["$ref"] for body in optional)


def test_a_number_without_a_fraction_is_an_integer(target: Target) -> None:
    headers = {"authorization": f"Bearer {target.token}", "content-type": "application/json"}

    def sent(text: str) -> httpx2.Response:
        return httpx2.post(f"{target.url}/api/v1/jobs", headers=headers, content=text)

    made = sent('{"task": "t", "priority": 51.0, "max_attempts": 3.0, "payload": {"n": 151.0}}')
    assert made.status_code == 201, made.text
    assert (made.json()["priority"], made.json()["max_attempts"]) == (51, 3)
    assert isinstance(made.json()["payload"]["n"], float)
    assert sent('{"task": "t", "priority": 51.5}').status_code == 400
    assert sent('{"task": "t", "priority": true}').status_code == 400
    assert sent('{"task": "t", "priority": 101.0}').status_code == 400


def test_a_client_made_by_openapi_python_client_works(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not GENERATOR.exists():
        pytest.skip("NOT RUN: openapi-python-client is not installed; `python3 dev.py test` installs it")
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(target.document))
    monkeypatch.setenv("PATH", f"{GENERATOR.parent}:/usr/bin:/bin")
    made = subprocess.run(
        [
            GENERATOR,
            "generate",
            "--path",
            document,
            "--output-path",
            tmp_path / "made_client",
            "--meta",
            "none",
            "--fail-on-warning",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    made_client = importlib.import_module("made_client")
    models = importlib.import_module("made_client.models")
    calls = {name: importlib.import_module(f"made_client.api.jobs.{name}") for name in ("create_job", "boost_job", "cancel_job")}
    with made_client.AuthenticatedClient(base_url=target.url, token=target.token) as client:
        job = calls["create_job"].sync(client=client, body=models.JobIn(task="t", priority=50))
        number = str(job.id)
        boosted = calls["boost_job"].sync(number, client=client)
        assert boosted.priority > job.priority
        again = calls["boost_job"].sync(number, client=client, body=models.BoostIn(amount=2))
        assert again.priority == boosted.priority + 2
        assert calls["cancel_job"].sync(number, client=client).state == "cancelled"


SCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./windlass";
const client = createClient<paths>({ baseUrl: process.argv[2], headers: { authorization: `Bearer ${process.argv[3]}` } });
const made = await client.POST("/api/v1/jobs", { body: { task: "t", priority: 50 } });
if (!made.data) throw new Error(JSON.stringify(made.error));
const params = { path: { id: String(made.data.id) } };
const bare = await client.POST("/api/v1/jobs/{id}/boost", { params });
const full = await client.POST("/api/v1/jobs/{id}/boost", { params, body: { amount: 2 } });
console.log(JSON.stringify([made.data.priority, bare.data?.priority, full.data?.priority]));
"""


def typescript_tools() -> Path:
    """Bring the packages once, and keep them beside the other tools."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("NOT RUN: openapi-typescript needs node and npm; install Node.js 20 or newer")
    if not (PACKAGES / "node_modules" / "openapi-fetch").exists():
        PACKAGES.mkdir(parents=True, exist_ok=True)
        packages = ["openapi-typescript@7", "typescript@5", "openapi-fetch@0", "@types/node@22"]
        brought = subprocess.run(
            [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", PACKAGES, *packages],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if brought.returncode:
            pytest.skip(f"NOT RUN: npm could not bring openapi-typescript: {brought.stderr[-300:]}")
    return PACKAGES / "node_modules"


def test_a_client_made_by_openapi_typescript_works(target: Target, tmp_path: Path) -> None:
    tools = typescript_tools()
    (tmp_path / "node_modules").symlink_to(tools)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "openapi.json").write_text(json.dumps(target.document))
    (tmp_path / "client.ts").write_text(SCRIPT)
    options = ["--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler"]
    options += ["--skipLibCheck", "--types", "node"]
    output = ""
    commands: tuple[list[str | Path], ...] = (
        [tools / ".bin" / "openapi-typescript", "openapi.json", "-o", "windlass.d.ts"],
        [tools / ".bin" / "tsc", *options, "client.ts"],
        ["node", "client.js", target.url, target.token],
    )
    for command in commands:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        output = ran.stdout
    made, bare, full = json.loads(output)
    assert made < bare == full - 2
