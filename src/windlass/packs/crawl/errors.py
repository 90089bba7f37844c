"""Why a crawl ends without having been everywhere.

WindlassError
├── CrawlRefused        the source, its address or its answer is wrong: fails for good
│   └── PageGone        there is no such page, or no longer
└── SiteUnavailable     the site does not answer, or says that it cannot now: worth a retry
"""

from __future__ import annotations

from windlass.errors import WindlassError


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
