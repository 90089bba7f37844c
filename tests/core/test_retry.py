from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.durations import MAX
from windlass.core.retry import PROFILES, Jitter, Profile, RetryPolicy, RetrySpec
from windlass.errors import InvalidInput

# The crawl queue, "Example Retry Schedule": retry number, least and most delay in seconds.
CRAWL_TABLE = [(1, 48, 72), (2, 96, 144), (3, 192, 288), (4, 384, 576), (5, 768, 1152), (20, 19.2 * 3600, 28.8 * 3600)]
# The interval scheduler: base 60, capped at an hour.
INTERVAL_SERIES = [60, 120, 240, 480, 960, 1920, 3600, 3600]
# The async jobs system, "Exponential Backoff": about 1 s, 2 s, 4 s with 10 % jitter, at most 5 minutes.
TASK_TABLE = [(1, 0.9, 1.1), (2, 1.8, 2.2), (3, 3.6, 4.4), (9, 230.4, 281.6), (10, 270, 330), (40, 270, 330)]
# The pull API: base 30, cap 3600; attempts=0 is the first failed run; up to 20 % on top of the cap.
PULL_TABLE = [(1, 30, 36), (2, 60, 72), (3, 120, 144), (4, 240, 288), (5, 480, 576), (8, 3600, 4320), (100, 3600, 4320)]

DURATIONS = st.timedeltas(min_value=timedelta(), max_value=MAX)
JITTERS = st.floats(min_value=0, max_value=1)
FAILURES = st.integers(min_value=-(10**9), max_value=10**9)
SPECS = st.builds(
    RetrySpec,
    profile=st.sampled_from(sorted(PROFILES)),
    base=st.none() | DURATIONS,
    cap=st.none() | DURATIONS,
    jitter=st.none() | JITTERS,
)


class Extreme(Random):
    """Chance that always falls at one end."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def random(self) -> float:
        return self._share


def seconds(profile: str, failures: int, rng: Random) -> float:
    return PROFILES[profile].policy.delay(failures, rng).total_seconds()


def microseconds(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("profile", "failures", "least", "most"),
    [(name, *row) for name, table in (("crawl", CRAWL_TABLE), ("task", TASK_TABLE), ("pull", PULL_TABLE)) for row in table],
)
def test_a_profile_reaches_both_ends_of_its_seeds_table(profile: str, failures: int, least: float, most: float) -> None:
    assert seconds(profile, failures, Extreme(0.0)) == pytest.approx(least)
    assert seconds(profile, failures, Extreme(1.0)) == pytest.approx(most)


def test_the_interval_profile_gives_the_series_of_the_interval_scheduler() -> None:
    assert [seconds("interval", n, Random(0)) for n in range(1, 9)] == INTERVAL_SERIES


def test_profiles_have_the_documented_attempts() -> None:
    assert {name: profile.max_attempts for name, profile in PROFILES.items()} == {"crawl": 4, "interval": 4, "task": 3, "pull": 5}


@given(base=DURATIONS, cap=DURATIONS, jitter=JITTERS, mode=st.sampled_from(Jitter), failures=FAILURES, seed=st.integers())
def test_a_delay_keeps_its_bounds(  # noqa: PLR0917 - hypothesis passes each part
    base: timedelta, cap: timedelta, jitter: float, mode: Jitter, failures: int, seed: int
) -> None:
    delay = RetryPolicy(base=base, cap=cap, jitter=jitter, mode=mode).delay(failures, Random(seed))
    grown = min(microseconds(base) * 2 ** min(max(failures, 1) - 1, 100), microseconds(cap))
    least = 1 - jitter if mode is Jitter.SPREAD else 1
    most = 1 if mode is Jitter.NONE else 1 + jitter
    assert grown * least - 1 <= microseconds(delay) <= grown * most + 1


@given(failures=FAILURES)
def test_without_jitter_a_delay_never_shrinks_with_more_failures(failures: int) -> None:
    policy = PROFILES["interval"].policy
    assert policy.delay(failures, Random(0)) <= policy.delay(failures + 1, Random(0))


@given(seed=st.integers())
def test_the_same_chance_gives_the_same_delay(seed: int) -> None:
    policy = PROFILES["crawl"].policy
    assert policy.delay(3, Random(seed)) == policy.delay(3, Random(seed))


@pytest.mark.parametrize("failures", [0, -1, -(10**9)])
def test_a_count_below_one_waits_like_the_first_failure(failures: int) -> None:
    assert seconds("interval", failures, Random(0)) == 60


def test_a_billion_failures_wait_for_the_cap() -> None:
    assert seconds("interval", 10**9, Random(0)) == 3600


def test_a_base_above_the_cap_waits_for_the_cap() -> None:
    policy = RetryPolicy(base=timedelta(hours=2), cap=timedelta(hours=1), mode=Jitter.NONE)
    assert policy.delay(1, Random(0)) == timedelta(hours=1)


def test_a_spec_that_overrides_nothing_is_stored_as_its_name() -> None:
    assert [RetrySpec(profile=name).encode() for name in PROFILES] == list(PROFILES)


def test_a_spec_stores_only_what_was_given() -> None:
    stored = RetrySpec(profile="interval", base=timedelta(seconds=120)).encode()
    assert json.loads(stored) == {"profile": "interval", "base": 120_000_000}


@given(SPECS)
def test_a_spec_survives_its_stored_form(spec: RetrySpec) -> None:
    assert RetrySpec.decode(spec.encode()) == spec


def test_rows_with_the_same_text_share_one_spec() -> None:
    assert RetrySpec.decode('{"profile":"task","base":5}') is RetrySpec.decode('{"profile":"task","base":5}')


def test_a_plain_spec_resolves_to_the_profiles_policy() -> None:
    assert RetrySpec(profile="pull").resolve() == PROFILES["pull"].policy


def test_given_values_beat_the_profile_and_the_rest_comes_from_it() -> None:
    policy = RetrySpec(profile="crawl", base=timedelta(seconds=5)).resolve()
    assert policy == RetryPolicy(base=timedelta(seconds=5), cap=timedelta(hours=24), jitter=0.2, mode=Jitter.SPREAD)


def test_what_was_left_open_follows_the_settings_of_the_moment() -> None:
    setting = RetryPolicy(base=timedelta(seconds=7), cap=timedelta(seconds=70), jitter=0.0, mode=Jitter.ADD)
    changed: Mapping[str, Profile] = {**PROFILES, "pull": Profile(policy=setting, max_attempts=9)}
    assert RetrySpec(profile="pull").resolve(changed) == setting


def test_a_jitter_given_to_a_profile_without_one_is_used() -> None:
    policy = RetrySpec(profile="interval", jitter=0.5).resolve()
    assert policy.delay(1, Extreme(1.0)) == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("given_values", "field"),
    [
        ({"base": timedelta(seconds=-1)}, "retry.base"),
        ({"cap": timedelta(seconds=-1)}, "retry.cap"),
        ({"cap": timedelta.max}, "retry.cap"),
        ({"base": 5}, "retry.base"),
        ({"jitter": 1.01}, "retry.jitter"),
        ({"jitter": -0.1}, "retry.jitter"),
        ({"jitter": float("nan")}, "retry.jitter"),
        ({"jitter": True}, "retry.jitter"),
        ({"jitter": "0.1"}, "retry.jitter"),
        ({"profile": "eager"}, "retry.profile"),
        ({"profile": None}, "retry.profile"),
    ],
)
def test_a_bad_value_is_refused_by_name(given_values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        RetrySpec(**given_values)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_policy_refuses_bad_values_too() -> None:
    with pytest.raises(InvalidInput, match=r"retry\.jitter"):
        RetryPolicy(base=timedelta(seconds=1), cap=timedelta(seconds=1), jitter=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eager",
        "{",
        "{}x",
        '{"profile":[]}',
        '{"profile":"task","mode":"add"}',
        '{"base":"5s"}',
        '{"base":1.5}',
        '{"base":true}',
        '{"base":-1}',
        '{"base":1' + "0" * 30 + "}",
        '{"jitter":[]}',
        '{"a":' * 5000,
    ],
)
def test_stored_text_that_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        RetrySpec.decode(text)


def test_a_profile_missing_from_the_settings_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"retry\.profile"):
        RetrySpec(profile="task").resolve({})
