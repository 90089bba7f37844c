"""The documentation as a site: built without a warning, no dead link, nothing fetched from others, everything found."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.docs.reference import public_modules
from tests.docs.site import build, problems, read
from tests.docs.site_hooks import menu


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the site once for all processes of a run."""
    own = tmp_path_factory.getbasetemp()
    shared = (own if worker_id == "master" else own.parent) / "site"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "built").exists():
            build(shared / "site")
            (shared / "built").touch()
    return shared / "site"


def test_no_link_is_dead_and_nothing_is_fetched_from_others(site: Path) -> None:
    assert list(problems(site)) == []
    assert len(read(site)) > 100


def test_every_page_is_found_by_the_search(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"]}
    assert {"howto/kubernetes/", "coming-from/celery/", "tutorial/", "reference/settings/", "comparison/"} <= found
    [lease] = [entry["text"] for entry in index["docs"] if entry["location"] == "concepts/#leases-and-fences"]
    assert "The token is the fence" in lease


def test_the_public_names_have_their_signatures_and_docstrings(site: Path) -> None:
    text = (site / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    for name in ("windlass.Windlass.enqueue", "windlass.Windlass.cancel", "windlass.Task.using", "windlass.JobContext.progress"):
        assert f'id="{name}"' in text, name
    assert "Making one does no I/O" in text


def test_the_public_names_of_modules_have_theirs_too(site: Path) -> None:
    text = (site / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    listed = [(module, name) for module, names in public_modules() for name in names]
    missing = {(module, name) for module, name in listed if f'id="{module}.{name}"' not in text}
    # Modules themselves; each has a page of the guides.
    assert missing == {("windlass.packs", "feeds"), ("windlass.compat", "jobs"), ("windlass.store", "migrate")}
    assert "windlass.fastapi" in text
    assert "Make an application on the engine" in text


def test_the_menu_is_the_page_that_lists_all_pages() -> None:
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    sections = menu(listed)
    assert sections[0] == {"Home": "README.md"}
    assert [next(iter(section)) for section in sections[1:]] == [
        line[3:] for line in listed.splitlines() if line.startswith("## ")
    ]
    begin = sections[1]["Begin"]
    assert {"Tutorial": "tutorial.md"} in begin


def test_a_dead_link_and_a_foreign_script_are_found(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "index.html").write_text('<h1 id="top">there</h1>', encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<a href="there/#top">good</a><a href="there/#gone">x</a><a href="nowhere/">y</a>'
        '<a href="https://example.org/">z</a><script src="https://example.org/x.js"></script>',
        encoding="utf-8",
    )
    assert list(problems(tmp_path)) == [
        "index.html: a browser would fetch https://example.org/x.js",
        "index.html: there/#gone has no such place on its page",
        "index.html: nowhere/ leads nowhere",
    ]
