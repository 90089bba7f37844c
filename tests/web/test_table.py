"""Paths lead to rows: a fixed segment before a parameter, an encoded slash inside its segment."""

from __future__ import annotations

import pytest

from windlass.web.router import Router

TABLE = Router(
    [
        ("GET", "/jobs", "list"),
        ("POST", "/jobs", "create"),
        ("GET", "/jobs/status-counts", "counts"),
        ("GET", "/jobs/{id}", "get"),
        ("GET", "/jobs/{id}/runs/{number}", "run"),
        ("GET", "/jobs/bulk/runs", "bulk runs"),
        ("GET", "/{any}/x", "any"),
    ]
)


@pytest.mark.parametrize(
    ("path", "row", "params"),
    [
        (b"/jobs", "list", {}),
        (b"/jobs/status-counts", "counts", {}),
        (b"/jobs/status%2dcounts", "counts", {}),
        (b"/jobs/7", "get", {"id": "7"}),
        (b"/jobs/a%2Fb", "get", {"id": "a/b"}),
        (b"/jobs/%7B%7D", "get", {"id": "{}"}),
        (b"/jobs/status-counts/runs/3", "run", {"id": "status-counts", "number": "3"}),
        (b"/jobs/bulk/runs/3", "run", {"id": "bulk", "number": "3"}),
        (b"/jobs/bulk/runs", "bulk runs", {}),
        (b"/jobs/x", "get", {"id": "x"}),
        (b"/other/x", "any", {"any": "other"}),
    ],
)
def test_a_path_leads_to_its_row(path: bytes, row: str, params: dict[str, str]) -> None:
    found = TABLE.find(path)
    assert found is not None
    assert (found.methods["GET"], found.params) == (row, params)


@pytest.mark.parametrize(
    "path", [b"", b"/", b"/jobs/", b"//jobs", b"/jobs/7/runs", b"/jobs/%ff", b"/jobs/7/runs/", b"jobs", b"/{}"]
)
def test_a_path_that_is_not_there_leads_nowhere(path: bytes) -> None:
    assert TABLE.find(path) is None


def test_every_method_of_a_path_is_found() -> None:
    found = TABLE.find(b"/jobs")
    assert found is not None
    assert found.methods == {"GET": "list", "POST": "create"}


def test_a_row_is_in_the_table_once_and_names_its_parameters_alike() -> None:
    with pytest.raises(ValueError, match="already"):
        Router([("GET", "/a", 1), ("GET", "/a", 2)])
    with pytest.raises(ValueError, match="otherwise"):
        Router([("GET", "/a/{id}", 1), ("POST", "/a/{name}", 2)])
