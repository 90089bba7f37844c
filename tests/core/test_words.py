from __future__ import annotations

import pytest
from hypothesis import given

from tests.core.test_cadence import CADENCES
from windlass.core.cadence import Cadence, parse_cadence
from windlass.core.cadence_text import describe


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("@every 30m", "every 30 minutes"),
        ("@every 1h", "every hour"),
        ("@every 1d12h", "every 1 day 12 hours"),
        ("@every 90s", "every 1 minute 30 seconds"),
        ("@every 1500ms", "every 1 second 500 milliseconds"),
        ("@handler 1h", "when its handler says, else every hour"),
        ("@hourly", "every hour (UTC)"),
        ("@daily", "at 00:00 (UTC)"),
        ("@weekly", "at 00:00 on Sunday (UTC)"),
        ("@monthly", "at 00:00 on day 1 of the month (UTC)"),
        ("@yearly", "at 00:00 on day 1 of the month in January (UTC)"),
        ("0 3 * * mon-fri", "at 03:00 on Monday to Friday (UTC)"),
        ("30 9,17 * * *", "at 09:30 and 17:30 (UTC)"),
        ("*/15 * * * *", "every 15 minutes (UTC)"),
        ("0 */6 * * *", "every 6 hours (UTC)"),
        ("5 */6 * * *", "every 6 hours at 5 minutes past (UTC)"),
        ("*/10 9-17 * * 1-5", "every 10 minutes, during hours 9 to 17 on Monday to Friday (UTC)"),
        ("0 0 L * *", "at 00:00 on the last day of the month (UTC)"),
        ("0 0 * * FRI#2", "at 00:00 on the second Friday of the month (UTC)"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month (UTC)"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday (UTC)"),
    ],
)
def test_a_cadence_is_told_in_words(text: str, words: str) -> None:
    assert describe(parse_cadence(text)) == words


@given(cadence=CADENCES)
def test_every_cadence_can_be_told(cadence: Cadence) -> None:
    assert describe(cadence)
