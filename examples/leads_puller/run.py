"""Starts a server on a file of its own, asks for leads in three cities, runs the worker, prints what it found, cleans up."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

CITIES = {"Berlin": 5, "Bonn": 3, "Ulm": 50}
"""How many leads each city is searched for; Ulm has fewer than that."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def send(url: str, token: str, body: dict[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    with urlopen(Request(url, data, headers), timeout=30) as answer:
        return bytes(answer.read())


def until_ready(url: str) -> None:
    for _ in range(300):
        try:
            urlopen(f"{url}/readyz", timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server did not come up")


def main() -> None:
    token, secret, port = secrets.token_hex(), secrets.token_hex(), free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        given = {"WINDLASS_ADMIN_TOKEN": token, "WINDLASS_WORKER_SECRET": secret}
        command = [sys.executable, "-m", "windlass", "up", "--port", str(port), "--database", f"sqlite:///{folder}/leads.db"]
        server = subprocess.Popen(command, env=os.environ | given, stdout=subprocess.DEVNULL)
        try:
            until_ready(url)
            for city, count in CITIES.items():
                job = {"task": "find-leads", "lane": "pull", "payload": {"city": city}, "target_count": count}
                send(f"{url}/api/v1/jobs", token, job)
            worker = [sys.executable, str(Path(__file__).with_name("worker.py"))]
            subprocess.run(worker, env=os.environ | {"LEADS_URL": url, "LEADS_SECRET": secret}, check=True)
            print(send(f"{url}/api/v1/items/export?collection=find-leads&format=csv", token).decode())
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main()
