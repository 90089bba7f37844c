"""Why a crawl ends without having been everywhere.

WindlassError
├── CrawlRefused        the source, its address or its answer is wrong: fails for good
│   └── PageGone        there is no such page, or no longer
└── SiteUnavailable     the site does not answer, or answers that it cannot now: worth a retry
"""

from __future__ import annotations

from windlass.errors import WindlassError
from windlass.packs.outgoing import Answer


class CrawlRefused(WindlassError):
    """A crawl cannot be done, now or later."""


class PageGone(CrawlRefused):
    """There is no such page, or no longer."""


class SiteUnavailable(WindlassError):
    """A site cannot be crawled now."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s
        """How long the site asks to be left alone."""


_TOO_MANY = 429
_SERVER_ERROR = 500
LONGEST_WAIT_S = 86_400.0


def asks_to_wait(status: int) -> bool:
    """Whether the same request may be answered later."""
    return status == _TOO_MANY or status >= _SERVER_ERROR


def wait_of(answer: Answer) -> float | None:
    """Read how long a host asks to be left alone, when it is given in seconds."""
    said = answer.headers.get("retry-after", "").strip()
    return min(float(said), LONGEST_WAIT_S) if said.isascii() and said.isdigit() else None
