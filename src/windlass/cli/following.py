"""Looks again and again until there is no more to come, or Ctrl-C, which is a good end."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from windlass.cli.output import complain
from windlass.errors import StoreUnavailable

_LEAST_S = 0.5
# A look that takes long is followed by a longer rest, so that following costs at most a fifth of a core.
_REST = 4


def follow(look: Callable[[], bool]) -> None:
    """Call `look` about twice a second until it returns False; a database that is away is reported once and tried again."""
    is_away = False
    with suppress(KeyboardInterrupt):
        while True:
            start = time.monotonic()
            try:
                if not look():
                    return
                is_away = False
            except StoreUnavailable as error:
                if not is_away:
                    complain(error)
                is_away = True
            time.sleep(max(_LEAST_S, _REST * (time.monotonic() - start)))
