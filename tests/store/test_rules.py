"""A rule lives in one place: what is changed in core changes what the statements do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.store.builders import a_job, enqueue_one
from windlass.core import aging, transitions
from windlass.core.job import JobState
from windlass.core.transitions import LegalMove
from windlass.errors import InvalidTransition
from windlass.store import Store, postgres
from windlass.store.queries import queries
from windlass.store.spelling import spell
from windlass.testing import FakeClock


@pytest.fixture
def _changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Change rules in core before a store reads its statements."""
    monkeypatch.setattr(aging, "PATIENCE", timedelta(minutes=2))
    monkeypatch.setattr(aging, "STEP", timedelta(minutes=1))
    monkeypatch.setattr(aging, "GAIN", 7)
    monkeypatch.setattr(aging, "TOP", 50)
    monkeypatch.setitem(transitions.MOVES, "pause", LegalMove(JobState.PAUSED, frozenset({JobState.PENDING})))
    queries.cache_clear()
    monkeypatch.setattr(postgres, "_texts", postgres._Texts(queries("postgres")))
    yield
    monkeypatch.undo()
    queries.cache_clear()


@pytest.mark.usefixtures("_changed")
@pytest.mark.parametrize(("minutes", "priority"), [(2, 0), (2.5, 7), (3, 14), (5.5, 28), (60, 50)])
async def test_aging_follows_its_constants(store: Store, clock: FakeClock, *, minutes: float, priority: int) -> None:
    job_id = await enqueue_one(store, a_job(run_at=clock.now() - timedelta(minutes=minutes)))
    await store.age()
    assert (await store.get(job_id)).priority == priority == aging.aged(0, 0, timedelta(minutes=minutes))


@pytest.mark.usefixtures("_changed")
async def test_a_move_is_legal_where_the_table_says_so(store: Store) -> None:
    pending = await enqueue_one(store, a_job())
    scheduled = await enqueue_one(store, a_job(delay=timedelta(minutes=1)))
    assert (await store.pause([pending])).one().state is JobState.PAUSED
    with pytest.raises(InvalidTransition, match="scheduled → paused"):
        (await store.pause([scheduled])).one()


def test_the_retry_settings_take_their_defaults_from_the_profiles() -> None:
    program = """
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from windlass.core import retry
changed = {
    name: replace(one, policy=replace(one.policy, base=timedelta(seconds=17), jitter=0.0), max_attempts=9)
    for name, one in retry.PROFILES.items()
}
retry.PROFILES = MappingProxyType(changed)
from windlass.config import load
found = load({}, environ={}).profiles
assert found == changed, found
assert load({"retry_base": 3}, environ={}).profiles["task"].policy.base == timedelta(seconds=3)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("common", "postgres", "sqlite"),
    [
        ("a = :b::bigint[]", "a = :b::bigint[]", "a = :b"),
        ("from t j indexed by i where 1", "from t j where 1", "from t j indexed by i where 1"),
        ("from t j not indexed\nwhere 1", "from t j\nwhere 1", "from t j not indexed\nwhere 1"),
        ("order by id for update of j skip locked)", "order by id for update of j skip locked)", "order by id)"),
        ("a is not distinct from b", "a is not distinct from b", "a is b"),
        ("a is distinct from b", "a is distinct from b", "a is not b"),
        (
            "id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and (b)",
            "id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and (b)",
            "id in (select value from json_each(:ids)) and (b)",
        ),
        ("id <> all(array(select f(1)))", "id <> all(array(select f(1)))", "id not in (select f(1))"),
        ("returning j.id", "returning j.id", "returning id"),
    ],
)
def test_a_common_text_is_spelled_for_each_database(common: str, postgres: str, sqlite: str) -> None:
    assert spell(common, "postgres") == postgres
    assert spell(common, "sqlite") == sqlite


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_a_query_with_a_direction_is_two_queries(dialect: str) -> None:
    known = queries(dialect)
    newest, oldest = (" ".join(known.statements(f"list_all_{end}")) for end in ("newest", "oldest"))
    assert "order by j.id desc limit 10501" in " ".join(newest.split())
    assert "order by j.id limit 10501" in " ".join(oldest.split())
