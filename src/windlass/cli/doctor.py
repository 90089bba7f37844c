"""`windlass doctor`."""

from __future__ import annotations

import sys

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.exit_codes import PROBLEMS, WARNINGS
from windlass.cli.output import plain, say, say_json
from windlass.cli.progress import progress
from windlass.cli.session import check_file, person, quiet_driver
from windlass.core.audit import Actor
from windlass.core.finding import Examination, Finding, Severity
from windlass.core.one_line import one_line

_CODES = {Severity.OK: 0, Severity.WARNING: WARNINGS, Severity.PROBLEM: PROBLEMS}


@click.command()
@click.option("--deep", is_flag=True, help="Read every row: rules, counts, the audit chain. Takes minutes on a large database.")
@click.option("--repair", is_flag=True, help="Count jobs and runs again and correct wrong counts; workers may go on.")
@options.as_json
@options.database
def doctor(*, deep: bool, repair: bool, as_json: bool, database: str | None) -> None:
    """Examine the database, the fleet and the settings, and print what helps.

    Exit codes: 0 all is well, 1 something should be looked at, 2 something does not work or the database does not answer.
    """
    quiet_driver()
    with Windlass(database) as app, progress("doctor") as step:
        check_file(app.settings.database_url)
        found = app.doctor_sync(
            deep=deep, repair=repair, actor=Actor(person()), notice=lambda what, rows: step(rows, f"looking at {what}")
        )
    if as_json:
        say_json({"verdict": found.verdict.value, "checks": [plain(one) for one in found.findings]})
    else:
        _print(found)
    sys.exit(_CODES[found.verdict])


def _print(found: Examination) -> None:
    width = max(len(one.check) for one in found.findings)
    for one in found.findings:
        for line in _lines(one, width):
            click.echo(line)
    counts = {verdict: found.count(verdict) for verdict in Severity}
    warnings, problems = _number(counts[Severity.WARNING], "warning"), _number(counts[Severity.PROBLEM], "problem")
    say(f"{counts[Severity.OK]} ok, {warnings}, {problems}")


def _lines(one: Finding, width: int) -> list[str]:
    indent = " " * (width + 11)
    lines = [f"{one.verdict:<7}  {one.check:<{width}}  {one_line(one.message)}"]
    lines += [f"{indent}- {one_line(detail)}" for detail in one.details]
    return lines if one.remedy is None else [*lines, f"{indent}help: {one_line(one.remedy)}"]


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
