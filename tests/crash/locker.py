"""A process that keeps every other one from writing to a SQLite file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.crash.child import Ears, options_of, say
from windlass.store.sqlite import driver


@dataclass(frozen=True)
class Options:
    """Which file to lock."""

    url: str


async def main(options: Options) -> None:
    """Hold the lock from the first word to the second."""
    connection = driver.connect(urlsplit(options.url).path.removeprefix("/"), isolation_level=None, timeout=30)
    ears = Ears()
    await ears.ready()
    connection.execute("begin exclusive")
    say("locked")
    assert await ears.hear() == "unlock"
    connection.execute("rollback")
    say("unlocked")
    connection.close()


if __name__ == "__main__":
    asyncio.run(main(options_of(Options)))
