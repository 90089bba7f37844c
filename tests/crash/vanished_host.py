"""Loses every packet to the database, in a network namespace of its own; tells how long the driver waited."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from datetime import timedelta
from random import Random

from tests.support.silent_proxy import silent_proxy
from windlass.errors import StoreUnavailable
from windlass.store import Store, open_store

# A bucket too small for any packet: the commonest kernels can do this, and few of them netem.
LOSE = "tc qdisc add dev lo root tbf rate 8bit burst 1 limit 1"
LOSE_NOTHING = "tc qdisc del dev lo root"


def system(command: str) -> None:
    subprocess.run(command.split(), check=True, timeout=10)


async def until_answered(store: Store) -> float:
    began = time.monotonic()
    while time.monotonic() - began < 60:
        try:
            await store.clock()
            break
        except StoreUnavailable:
            await asyncio.sleep(0.05)
    return time.monotonic() - began


async def main(dsn: str) -> None:
    system("ip link set lo up")
    with silent_proxy(dsn) as proxy:
        # The watchdog is far off: what is measured is the kernel.
        store = open_store(proxy.url, rng=Random(1), statement_timeout=timedelta(minutes=5))
        await store.clock()
        system(LOSE)
        began = time.monotonic()
        try:
            await store.clock()
            error = ""
        except StoreUnavailable as caught:
            error = str(caught)
        waited = time.monotonic() - began
        system(LOSE_NOTHING)
        print(json.dumps({"waited": waited, "error": error, "recovered": await until_answered(store)}))
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
