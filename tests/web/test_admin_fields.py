"""The priority crawl queue's words for every state and reason there is."""

from __future__ import annotations

from itertools import product

import pytest

from windlass.core.job import WAITING, Count, JobState, WaitReason
from windlass.web.admin_fields import Shown, Status, counts_by_status, shown_as, states_shown_as, subject_shown

S, R = JobState, WaitReason
EXPECTED: dict[tuple[JobState, WaitReason | None], str] = {
    **{(S.PENDING, reason): "queued" for reason in R},
    **{(S.SCHEDULED, reason): "queued" for reason in R},
    (S.SCHEDULED, R.RETRY): "failed",
    (S.SCHEDULED, R.LOST): "failed",
    **{(S.PAUSED, reason): "paused" for reason in R},
    (S.RUNNING, None): "crawling",
    (S.COMPLETED, None): "success",
    (S.FAILED, None): "failed",
    (S.CANCELLED, None): "cancelled",
}


def test_every_state_and_reason_has_its_word() -> None:
    pairs = [*product(WAITING, R), *((state, None) for state in S if state not in WAITING)]
    assert {pair: shown_as(*pair).value for pair in pairs} == EXPECTED


@pytest.mark.parametrize("word", Shown)
def test_a_filter_finds_exactly_what_is_shown_with_its_word(word: Shown) -> None:
    filters = states_shown_as(word)
    found = {
        (state, reason)
        for state, reason in EXPECTED
        if any(one.state is state and (one.reasons is None or reason in one.reasons) for one in filters)
    }
    assert found == {pair for pair, shown in EXPECTED.items() if shown == word}


def test_the_documented_words_are_among_those_shown() -> None:
    assert {word.value for word in Status} == {"queued", "crawling", "success", "failed"} < {word.value for word in Shown}


def test_counts_are_added_up_by_word() -> None:
    counts = [Count("crawl", lane, state, reason, 2) for lane in ("a", "b") for state, reason in EXPECTED]
    assert counts_by_status(counts) == {word: 4 * sum(shown == word for shown in EXPECTED.values()) for word in Shown}


@pytest.mark.parametrize(
    ("subject", "shown"), [(None, None), ("7", 7), ("007", "007"), ("news", "news"), ("", ""), ("٣", "٣"), ("-1", "-1")]
)
def test_a_subject_that_is_a_number_is_shown_as_one(subject: str | None, shown: object) -> None:
    assert subject_shown(subject) == shown
