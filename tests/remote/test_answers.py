"""Errors that cross HTTP come out as they went in."""

from __future__ import annotations

from typing import Any

import pytest

from windlass import errors
from windlass.http_client.answers import error_of
from windlass.web.errors import STATUS_OF, refusal_of

SENT = [
    errors.InvalidInput("priority", 500, "must be between 0 and 100"),
    errors.InvalidInput("cursor", "a: b (got c)", "is not one that a list gave out"),
    errors.UnknownTask("email"),
    errors.InvalidTransition(7, "pause", "completed", "paused"),
    errors.InvalidTransition(7, "run now", "failed", "running"),
    errors.InvalidTransition(7, "pause", "paused", "paused"),
    errors.InvalidTransition(7, "set priority", "completed", "scheduled"),
    errors.InvalidTransition(7, "take lease", "scheduled", "scheduled"),
    errors.JobNotFound("b17d0000-0000-8002-8000-000000000007"),
    errors.JobNotFound(7),
    errors.LetterNotFound(7),
    errors.LetterGroupNotFound("0123abcd"),
    errors.CanaryNotFound(7),
    errors.CanaryRunning(7),
    errors.CanaryEnded(7, "done"),
    errors.LetterSettled(7, "acknowledge", "ann acknowledged it before"),
    errors.SlotTaken(7, 8),
    errors.DuplicateJob("email", "user:7", 8),
    errors.LeaseHeld(7, "host:1:abc"),
    errors.LeaseLost(7),
    errors.ExecutionNotFound(7, 3),
]


@pytest.mark.parametrize("sent", SENT, ids=lambda error: type(error).__name__)
def test_an_error_comes_out_as_it_went_in(sent: Exception) -> None:
    refusal = refusal_of(sent)
    got = error_of(refusal.status, {"error": refusal.text}, {"x-request-id": "abc-1"})
    assert (type(got), str(got), got.request_id) == (type(sent), refusal.text, "abc-1")
    # The server adds where to look for what is not there.
    assert refusal.text.startswith(str(sent))
    for name, value in vars(sent).items():
        if name != "value":
            assert str(getattr(got, name)) == str(value), name


def test_every_error_that_a_server_tells_is_read_back_or_has_a_kind() -> None:
    known = {type(error) for error in SENT} | {errors.InvalidPayload}
    # Told as what they are over HTTP: nothing to find, no use of trying again now, or later.
    general = {
        errors.ChoreNotFound,
        errors.FeedNotFound,
        errors.GateNotFound,
        errors.PageNotFound,
        errors.ReminderNotFound,
        errors.SourceNotFound,
        errors.TokenNotFound,
        errors.WorkerNotFound,
        errors.BreakerOpen,
        errors.StoreConflict,
        errors.SchemaError,
        errors.StoreUnavailable,
    }
    assert set(STATUS_OF) <= known | general | {errors.ScheduleTaken, errors.InvalidInput}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.Refused),
        (408, errors.ServerUnavailable),
        (409, errors.Refused),
        (413, errors.Refused),
        (429, errors.TooManyRequests),
        (500, errors.ServerUnavailable),
        (502, errors.ServerUnavailable),
        (503, errors.ServerUnavailable),
    ],
)
@pytest.mark.parametrize("answer", [None, {"error": "some words"}, [], {"error": 5}, "text"])
def test_any_other_answer_has_the_error_of_its_status(status: int, kind: type[errors.RemoteError], answer: Any) -> None:
    error = error_of(status, answer, {})
    assert isinstance(error, kind)
    assert (error.status, error.request_id) == (status, None)


def test_who_is_told_to_wait_knows_how_long() -> None:
    error = error_of(429, {"error": "too many"}, {"retry-after": "17"})
    assert isinstance(error, errors.TooManyRequests)
    assert error.retry_after == 17.0


def test_a_hostile_answer_is_read_in_time() -> None:
    text = "cannot " + "job 1: " * 20_000 + "→"
    assert isinstance(error_of(409, {"error": text}, {}), errors.Refused)
