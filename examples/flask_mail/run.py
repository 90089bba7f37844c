"""Signs two people up, one in vain, and runs a worker as `flask windlass worker` would be typed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def show() -> None:
    """Use the shop as a browser would."""
    from app import create_app, jobs

    client = create_app().test_client()
    kept = client.post("/customers", data={"email": "ann@example.org"})
    refused = client.post("/customers", data={"email": "bob@example.invalid"})
    print("ann:", kept.status_code, "bob:", refused.status_code)
    typed = [sys.executable, "-m", "flask", "--app", "app", "windlass", "worker"]
    worker = subprocess.Popen(typed, cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        print(jobs.wait_sync(kept.get_json()["job"], timeout="60s"))
    finally:
        worker.send_signal(signal.SIGINT)
        worker.wait()
    found = jobs.list_sync()
    print("jobs:", [(job.task, job.state.value) for job in found.jobs])
    assert [job.task for job in found.jobs] == ["mail"], "a rolled back transaction leaves no job"
    jobs.close()


def main() -> None:
    """Choose a database, then show."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("SHOP_DATABASE_URL", f"sqlite:///{Path(folder) / 'shop.db'}")
        show()


if __name__ == "__main__":
    main()
