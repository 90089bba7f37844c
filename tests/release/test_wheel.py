"""What is uploaded: built, read by twine, installed into an empty environment, and used."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

import dev
from tests.release.checklist import (
    GUIDES,
    Built,
    NotReady,
    build,
    check_classifiers,
    check_everything,
    check_guide,
    check_lowest,
    check_urls,
    extras,
    main,
    try_wheel,
)

LONG = os.environ.get("WINDLASS_TEST_LONG") == "1"
only_long = pytest.mark.skipif(not LONG, reason="takes a minute: WINDLASS_TEST_LONG=1 or `python3 dev.py release --dry-run`")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(tmp_path_factory.mktemp("dist"))


def test_a_plain_installation_is_small_and_works(built: Built) -> None:
    assert try_wheel(built.wheel, "") <= 14
    with zipfile.ZipFile(built.wheel) as wheel:
        names = {name.split("/")[0] for name in wheel.namelist()}
        assert "windlass/py.typed" in wheel.namelist()
    assert {name for name in names if not name.endswith(".dist-info")} == {"windlass"}


def test_the_page_of_the_package_names_its_authors_and_what_it_is_for(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = wheel.read(name).decode()
    assert "\nAuthor: The Windlass contributors\n" in metadata
    for framework in ("Django", "FastAPI", "Flask"):
        assert f"\nClassifier: Framework :: {framework}\n" in metadata
        assert f"{framework.lower()}," in metadata.partition("\nKeywords: ")[2].partition("\n")[0]


def test_everything_brings_at_most_fifty_packages() -> None:
    assert 20 < int(check_everything().partition(" ")[0]) <= 50


def test_the_classifiers_are_the_pythons_that_are_tested() -> None:
    assert check_classifiers() == ", ".join(dev.PYTHONS)


def test_a_page_of_the_package_that_leads_nowhere_is_not_ready() -> None:
    with pytest.raises(NotReady, match="Changelog, Documentation, Issues, Source"):
        check_urls({})
    given = {name: f"https://queue.example/{name}" for name in ("Changelog", "Documentation", "Issues")}
    with pytest.raises(NotReady, match=r"address for Source$"):
        check_urls({"urls": given})
    assert check_urls({"urls": given | {"Source": "https://queue.example"}}) == "Changelog, Documentation, Issues, Source"


def test_a_version_of_development_is_not_released(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "by hand" in capsys.readouterr().err


@only_long
@pytest.mark.parametrize("extra", extras())
def test_every_extra_works_in_an_empty_environment(built: Built, extra: str) -> None:
    assert try_wheel(built.wheel, extra) <= 50


@only_long
@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_needs_no_more_than_it_installs(built: Built, page: str) -> None:
    assert check_guide(built.wheel, page)


@only_long
def test_it_works_with_the_lowest_versions_it_names(built: Built) -> None:
    assert check_lowest(built.wheel)


def test_what_does_not_install_is_told_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="nowhere"):
        try_wheel(tmp_path / "nowhere-1.0-py3-none-any.whl", "")
