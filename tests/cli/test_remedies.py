"""What is typed wrong is answered with the field, the value and what to type."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Command
from windlass import Windlass
from windlass.core.job import NewJob


@pytest.mark.parametrize(
    ("typed", "code", "words"),
    [
        ("explain nope", 1, ("job 'nope' not found", "by its number or UUID", "windlass jobs")),
        ("explain 99", 1, ("job 99 not found", "windlass jobs")),
        ("explain --task mial", 1, ("task 'mial' not found", "did you mean 'mail'?")),
        ("explain 1 --lane pull", 2, ("name one thing to explain",)),
        ("trace nope", 1, ("correlation 'nope' not found", "none has this number or UUID", "windlass jobs --json")),
        ("trace 1 --after -1", 2, ("after: must be a whole number between 0 and", "got -1")),
        ("logs 99", 1, ("job 99 not found", "windlass jobs")),
        ("logs 1 --run 7", 1, ("job 1 has no execution 7", "windlass job 1")),
        ("tail --lane=", 2, ("lane: must be a text of 1 to 200 characters", "got ''")),
        ("stats --watch 0", 2, ("watch: must be seconds from 0.5", "got '0'")),
        ("dead show 99", 1, ("dead letter 99 not found", "windlass dead")),
        ("dead canaries show 99", 1, ("canary 99 not found", "windlass dead canaries")),
        ("dead requeue --fingerprint nope", 1, ("fingerprint 'nope'", "windlass dead groups")),
        ("alerts silence dpth --for 2h --reason x", 2, ("rule: is no alert; did you mean depth?", "got 'dpth'")),
        ("alerts silence depth --for never --reason x", 2, ("for: ", "write for example 90", "got 'never'")),
        ("alerts silence depth --for 99d --reason x", 2, ("for: must be a duration of 1s to 30d", "got '99d'")),
        (
            "alerts silence depth --for 2h --reason x --subject mail",
            2,
            ("subject: depth is one alert", "leave it out", "got 'mail'"),
        ),
        ("alerts unsilence depth", 1, ("depth is not silenced", "windlass alerts")),
        ("alerts silnce depth", 2, ("'silnce'", "silence")),
        ("doctor --dep", 2, ("--dep", "--deep")),
        ("doctor --database foo", 2, ("it must begin with sqlite:///", "got 'foo'")),
    ],
)
def test_what_is_typed_wrong_is_named_with_its_remedy(
    windlass: Command, app: Windlass, *, typed: str, code: int, words: tuple[str, ...]
) -> None:
    app.enqueue_jobs_sync([NewJob(task="mail", lane="pull")])
    error = windlass(*typed.split(), code=code).stderr
    assert all(word in error for word in words), error
    assert "Traceback" not in error
