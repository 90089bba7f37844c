"""No page shows code that nothing runs."""

from __future__ import annotations

import re

from tests.docs.blocks import FRAGMENT, LANGUAGES, ROOT, blocks, pages

RUNNERS: dict[str, dict[str, str]] = {
    "README.md": {"python": "tests/docs/test_readme.py", "sh": "tests/docs/test_readme.py"},
    "docs/admin-api.md": {"http": "tests/web/test_admin_docs.py"},
    "docs/alerts.md": {"python": "tests/docs/test_pages.py", "sh": "tests/docs/test_pages.py"},
    "docs/api.md": {"python": "tests/client/test_docs.py"},
    "docs/cli.md": {"sh": "tests/cli/test_docs.py"},
    "docs/crawl.md": {
        "http": "tests/web/test_crawl_docs.py",
        "python": "tests/web/test_crawl_docs.py",
        "sh": "tests/web/test_crawl_docs.py",
    },
    "docs/dead-letters.md": {"sh": "tests/cli/test_dead_letters_page.py"},
    "docs/django.md": {"python": "tests/django/test_guide.py", "sh": "tests/django/test_guide.py"},
    "docs/explain.md": {"sh": "tests/cli/test_explain.py"},
    "docs/fastapi.md": {"python": "tests/docs/test_frameworks.py", "sh": "tests/docs/test_frameworks.py"},
    "docs/feeds.md": {"python": "tests/packs/test_feed_docs.py", "sh": "tests/packs/test_feed_docs.py"},
    "docs/flask.md": {"python": "tests/docs/test_frameworks.py", "sh": "tests/docs/test_frameworks.py"},
    "docs/http-client.md": {"python": "tests/remote/test_docs.py"},
    "docs/jobs-api.md": {"http": "tests/web/test_jobs_page.py"},
    "docs/metrics.md": {"python": "tests/docs/test_pages.py"},
    "docs/middleware.md": {"python": "tests/worker/test_middleware_page.py"},
    "docs/moving.md": {"sh": "tests/moving/test_page.py"},
    "docs/notify.md": {"http": "tests/packs/test_docs.py", "python": "tests/packs/test_docs.py"},
    "docs/operations/procedures.md": {"sh": "tests/docs/test_procedures.py"},
    "docs/packs.md": {"python": "tests/packs/test_docs.py", "sh": "tests/cli/test_packs.py"},
    "docs/pull-workers.md": {"python": "tests/web/test_pull_page.py", "sh": "tests/web/test_pull_page.py"},
    "docs/remote-worker.md": {
        "python": "tests/remote/test_remote_worker_page.py",
        "sh": "tests/remote/test_remote_worker_page.py",
    },
    "docs/schedules.md": {"python": "tests/client/test_docs.py"},
    "docs/server.md": {"python": "tests/docs/test_pages.py"},
    "docs/sqlalchemy.md": {"python": "tests/docs/test_frameworks.py"},
    "docs/store.md": {"python": "tests/client/test_docs.py"},
    "docs/systems/async-jobs.md": {"python": "tests/docs/test_pages.py"},
    "docs/systems/feed-jobs.md": {"python": "tests/docs/test_pages.py"},
    "docs/tasks.md": {"python": "tests/client/test_docs.py"},
    "docs/testing.md": {"python": "tests/testing/test_docs.py"},
    "docs/tracing.md": {"python": "tests/docs/test_pages.py"},
    "docs/tutorial.md": {"python": "tests/docs/test_tutorial.py", "sh": "tests/docs/test_tutorial.py"},
    "docs/upkeep.md": {"sh": "tests/docs/test_pages.py"},
    "docs/worker.md": {"python": "tests/client/test_worker_page.py", "sh": "tests/docs/test_pages.py"},
}
"""Which test runs a page's blocks of a language. Whoever writes a page with code adds its line, and the test."""
GUIDES = ("docs/coming-from/", "docs/howto/")
"""Folders whose pages tests/docs/test_guides.py runs, python and sh, whatever they are called."""


def shown() -> dict[str, set[str]]:
    """Say which languages each page has blocks in."""
    found = {page: {block.language for block in blocks(page) if block.mark != FRAGMENT} & LANGUAGES for page in pages()}
    for page in found:
        if page.startswith(GUIDES):
            found[page] -= {"python", "sh"}
    return {page: languages for page, languages in found.items() if languages}


def test_every_block_has_a_test_that_runs_it() -> None:
    missing = {page: languages - RUNNERS.get(page, {}).keys() for page, languages in shown().items()}
    assert {page: languages for page, languages in missing.items() if languages} == {}, "add a test and its line in RUNNERS"


def test_every_runner_is_there_and_names_its_page() -> None:
    for page, runners in RUNNERS.items():
        assert page in shown(), f"{page} has no code any more: take its line out"
        for runner in runners.values():
            assert page.rpartition("/")[2] in (ROOT / runner).read_text(encoding="utf-8"), (page, runner)


def test_every_link_of_a_page_leads_somewhere() -> None:
    assert {page: broken for page in pages() if (broken := _broken(page))} == {}


def _broken(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    local = [target for target in targets if "://" not in target]
    return [target for target in local if not (ROOT / page).parent.joinpath(target).exists()]
