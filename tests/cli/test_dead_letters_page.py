"""Every command of docs/dead-letters.md, on letters like those that the page shows."""

from __future__ import annotations

import re
import shlex

from tests.cli.conftest import Command
from tests.docs.blocks import lines
from windlass import Windlass
from windlass.core.job import NewJob
from windlass.core.letter_page import LetterQuery

PAGE = "docs/dead-letters.md"
SHOWN = re.compile(r"\b[0-9a-f]{16}\b")


def test_the_commands_of_the_page_do_what_it_says(windlass: Command, app: Windlass) -> None:
    charges = app.enqueue_jobs_sync([NewJob(task="charge") for _ in range(8)])
    addresses = app.enqueue_jobs_sync([NewJob(task="parse_address") for _ in range(2)])
    for job in (*charges, *addresses):
        app.bury_sync(job, f"{'the gateway refused' if job in charges else 'no town'}")
    app.enqueue_jobs_sync([NewJob(task="checkout", correlation_id="order-7")])
    mark = app.letters.list_sync(LetterQuery(task="charge")).letters[0].fingerprint
    answers = {}
    for line in lines(PAGE):
        typed = shlex.split(SHOWN.sub(mark, line))
        if "start" in typed:
            for job in charges:
                app.bury_sync(job, "the gateway refused")
        if "watch" in typed:
            app.canaries.cancel_sync(1)
        answers[line] = windlass(*typed[1:], code=1 if "watch" in typed else 0).stdout
    assert "8 match; nothing was changed" in answers["windlass dead requeue --fingerprint 8fbe8bdd1c2a4e8b --dry-run"]
    assert "8 matched: 8 requeued" in answers["windlass dead requeue --fingerprint 8fbe8bdd1c2a4e8b"]
    assert "canary 1: trying, 0 of 2" in answers["windlass dead canaries start --fingerprint 8fbe8bdd1c2a4e8b --size 2"]
    assert app.get_sync(addresses[0]).payload_json == '{"text":"Main Street 1, Springfield"}'
    assert "checkout" in answers["windlass trace 11 --ascii"]
