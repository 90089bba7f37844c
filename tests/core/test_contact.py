from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.contact import Contact

LEASE = timedelta(seconds=20)
START = datetime(2026, 3, 2, 12, tzinfo=UTC)


def touched(*seconds: float) -> Contact:
    """Make a contact that got these answers, in seconds of database time."""
    contact = Contact(LEASE)
    touch(contact, *seconds)
    return contact


def touch(contact: Contact, *seconds: float) -> None:
    for second in seconds:
        contact.touch(START + timedelta(seconds=second))


def test_a_process_that_never_got_an_answer_is_not_steady() -> None:
    assert not Contact(LEASE).is_steady


def test_one_answer_is_not_steady_contact() -> None:
    assert not touched(0).is_steady


@pytest.mark.parametrize(
    ("seconds", "is_steady"),
    [
        ((0, 5, 10, 15), False),
        ((0, 5, 10, 15, 19.999999), False),
        ((0, 5, 10, 15, 20), True),
        ((0, 10, 20), True),
        ((0, 10, 20, 30, 40), True),
    ],
)
def test_contact_is_steady_after_one_whole_lease_and_not_before(seconds: Sequence[float], is_steady: bool) -> None:  # noqa: FBT001
    assert touched(*seconds).is_steady is is_steady


def test_a_gap_of_more_than_half_a_lease_starts_anew() -> None:
    contact = touched(0, 10, 20, 30.000001)
    assert not contact.is_steady
    touch(contact, 40, 50)
    assert not contact.is_steady
    touch(contact, 50.000001)
    assert contact.is_steady


def test_two_answers_a_lease_apart_are_a_gap_and_not_contact() -> None:
    assert not touched(0, 20).is_steady


def test_a_suspended_machine_starts_anew() -> None:
    assert not touched(0, 10, 20, 3600).is_steady


def test_an_outage_starts_anew_however_short_it_was() -> None:
    contact = touched(0, 10, 20)
    contact.lose()
    assert not contact.is_steady
    touch(contact, 21, 31, 40.9)
    assert not contact.is_steady
    touch(contact, 41)
    assert contact.is_steady


def test_an_outage_before_the_first_answer_changes_nothing() -> None:
    contact = Contact(LEASE)
    contact.lose()
    touch(contact, 0, 10, 20)
    assert contact.is_steady


def test_a_clock_set_back_starts_anew() -> None:
    contact = touched(0, 10, 20, 19.999999)
    assert not contact.is_steady
    touch(contact, 29, 39)
    assert not contact.is_steady
    touch(contact, 39.999999)
    assert contact.is_steady


def test_the_same_time_twice_is_no_break() -> None:
    assert touched(0, 10, 10, 20, 20).is_steady


@given(st.lists(st.floats(min_value=-60, max_value=60), max_size=30))
def test_steady_means_a_whole_lease_of_small_forward_steps(steps: list[float]) -> None:
    contact = touched(0)
    unbroken = now = timedelta()
    for step in (timedelta(seconds=seconds) for seconds in steps):
        now += step
        unbroken = unbroken + step if timedelta() <= step <= LEASE / 2 else timedelta()
        contact.touch(START + now)
    assert contact.is_steady is (unbroken >= LEASE)
