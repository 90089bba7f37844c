"""Viewers that read as fast as they are answered, in a process of their own: `viewers.py PORT TOKEN COUNT PATH…`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter


async def view(port: int, requests: list[bytes], statuses: Counter[str]) -> None:
    at = 0
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while True:
                writer.write(requests[at % len(requests)])
                at += 1
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                statuses[head[9:12].decode()] += 1
        except (OSError, asyncio.IncompleteReadError):
            statuses["cut"] += 1
            await asyncio.sleep(0.05)


async def main(port: int, token: str, count: int, paths: list[str]) -> None:
    head = f"HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n"
    requests = [f"GET {path} {head}".encode() for path in paths]
    statuses: Counter[str] = Counter()
    tasks = [asyncio.create_task(view(port, requests[place % len(requests) :] + requests, statuses)) for place in range(count)]
    began = time.monotonic()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(json.dumps({"seconds": time.monotonic() - began, "statuses": statuses}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
