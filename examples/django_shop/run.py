"""Places two orders in a Django project, one of which is rolled back, and runs the worker for the job of the other.

Run it with `python examples/django_shop/run.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    """Show that a job is there if and only if its order is."""
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import transaction
    from shop_tasks import send_receipt

    call_command("migrate", verbosity=0)

    results = []
    for order, is_paid in ((1, True), (2, False)):
        with transaction.atomic():
            User.objects.create(username=f"customer {order}")
            results.append(send_receipt.enqueue(order=order))
            transaction.set_rollback(not is_paid)
    backend = send_receipt.get_backend()
    waiting = backend.client.list_sync().jobs
    print(f"{User.objects.count()} customer, {len(waiting)} job")

    command = [sys.executable, "-m", "django", "windlass_worker", "--noreload", "--log-level", "error"]
    worker = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while not results[0].is_finished:
            time.sleep(0.1)
            results[0].refresh()
        print(f"{results[0].status}: {results[0].return_value}")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop_settings"
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHOP_FILE"] = str(Path(folder, "shop.sqlite3"))
        main()
