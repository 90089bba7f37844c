"""`windlass top`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import click

from windlass.app import Windlass
from windlass.cli import options
from windlass.cli.job_view import show_job
from windlass.cli.jobs import read_job
from windlass.cli.keys import END, PressedKeys
from windlass.cli.output import say, say_json, say_table
from windlass.cli.screen import dim, draw, screen
from windlass.cli.session import operating
from windlass.cli.stats import headline
from windlass.cli.terminal import has_colour, is_terminal, size
from windlass.cli.top_places import PagePlace, Read, TablePlace
from windlass.cli.top_views import JOB_COLUMNS, VIEWS, job_rows, ordered, sort_column, top_fields
from windlass.cli.watching import picture_of, read_seconds
from windlass.client.operations import Operator
from windlass.core.durations import format_duration
from windlass.core.filter import JobFilter
from windlass.core.one_line import one_line
from windlass.core.page import JobQuery
from windlass.core.retry import Profile
from windlass.errors import ConfigError, WindlassError
from windlass.store.calls.top import Top

_KEYS = "1-5 view  s sort  r reverse  ↑↓ move  Enter open  Esc back  q quit"
# The headline, the names of the views, the keys, and the line where the cursor stays.
_RESERVED = 4
_RUNS = 10
_MOST_HELD = 50
_LOOK_S = 0.25
_FIRST = "lanes"


@click.command()
@click.option("--view", type=click.Choice(list(VIEWS)), help=f"Where to begin.  [default: {_FIRST}]")
@click.option("--sort", metavar="COLUMN", help="By which column of the view; the key s changes it.")
@click.option("--every", default="2", show_default=True, metavar="SECONDS", help="How often to look again, 0.5 or more.")
@click.option("--once", is_flag=True, help="Print it once, for scripts: one view, or all of them.")
@click.option("--json", "as_json", is_flag=True, help="Print everything once, in JSON.")
@options.database
def top(*, view: str | None, sort: str | None, every: str, once: bool, as_json: bool, database: str | None) -> None:
    """Watch lanes, tasks, workers, the jobs that run the longest and those that failed last, live.

    Keys: 1 to 5 or ← → change the view, s the column it is sorted by, r the direction; ↑ ↓ move, Enter opens a job, or lists the
    jobs of a lane, a task or a worker; Esc goes back, q quits.
    """
    column = None if sort is None else sort_column(view or _FIRST, sort)
    interval = read_seconds(every, field="every")
    if once or as_json:
        with operating(database) as operator:
            found = operator.insights.top_sync() if as_json else operator.insights.top_sync(VIEWS if view is None else {view})
        if as_json:
            say_json(top_fields(found))
        else:
            _print(found, view, column)
        return
    keys = PressedKeys()
    if not is_terminal():
        raise ConfigError("the standard output is not a terminal; in a script use `windlass top --once` or --json")
    profiles = Windlass(database).settings.profiles
    with operating(database) as operator, suppress(KeyboardInterrupt):
        _Live(operator, profiles, interval).run(keys, view or _FIRST, column)


def _print(found: Top, view: str | None, sort: str | None) -> None:
    say(headline(found.summary))
    for name, one in VIEWS.items():
        if view in {None, name}:
            click.echo(f"\n{name}")
            # A column of the first view may be none of the others.
            say_table(ordered(one.rows(found), sort if sort in one.columns else None, is_reversed=False), one.columns)


class _Live:
    """The live view: the page and row that are chosen, and what is drawn."""

    def __init__(self, operator: Operator, profiles: Mapping[str, Profile], every: timedelta) -> None:
        self._operator, self._profiles, self._every = operator, profiles, every
        self._found: Top | None = None
        self._problem = ""
        self._view = _FIRST
        self._tables = {name: TablePlace(name, one.columns, one.spare) for name, one in VIEWS.items()}
        # Where the person went from a view, with how each place is filled.
        self._opened: list[tuple[TablePlace | PagePlace, Read]] = []
        self._is_over = False

    def run(self, keys: PressedKeys, view: str, sort: str | None) -> None:
        """Draw and obey keys until the user quits."""
        self._view = view
        self._tables[view] = TablePlace(view, VIEWS[view].columns, VIEWS[view].spare, sort)
        # What is wrong at once is an error as in every command.
        self._look()
        due_at, drawn = time.monotonic() + self._every.total_seconds(), None
        with screen(lambda: "", keys):
            while not self._is_over:
                if time.monotonic() >= due_at:
                    self._look_again()
                    due_at, drawn = time.monotonic() + self._every.total_seconds(), None
                if drawn != (drawn := size()):
                    self._draw()
                if (key := keys.next(min(_LOOK_S, max(0.0, due_at - time.monotonic())))) is not None:
                    self._press(key)
                    drawn = None

    @property
    def _place(self) -> TablePlace | PagePlace:
        return self._opened[-1][0] if self._opened else self._tables[self._view]

    def _look(self) -> None:
        """Read what is shown here, and nothing else."""
        if self._opened:
            self._opened[-1][1]()
        else:
            self._found = self._operator.insights.top_sync({self._view})
            self._tables[self._view].fill(VIEWS[self._view].rows(self._found))
        self._problem = ""

    def _look_again(self) -> None:
        try:
            self._look()
        except WindlassError as error:
            self._problem = one_line(str(error))

    def _press(self, key: str) -> None:
        views = list(VIEWS)
        if key in {"q", "Q", END}:
            self._is_over = True
        elif key == "escape":
            if self._opened:
                self._opened.pop()
                self._look_again()
        elif key == "enter":
            self._open(self._place.chosen)
        elif key in {"left", "right"}:
            self._show(views[(views.index(self._view) + (1 if key == "right" else -1)) % len(views)])
        elif key.isascii() and key.isdigit() and 1 <= int(key) <= len(views):
            self._show(views[int(key) - 1])
        else:
            self._place.press(key)

    def _show(self, view: str) -> None:
        self._opened, self._view = [], view
        self._look_again()

    def _open(self, what: Any) -> None:
        """Go to a job, or to the jobs of a lane, a task or a worker."""
        if what is None:
            return
        self._opened.append(self._list_of(what) if isinstance(what, str) else self._page_of(what))
        self._look_again()

    def _page_of(self, number: int) -> tuple[PagePlace, Read]:
        page = PagePlace(f"job {number}")
        return page, lambda: page.fill(
            picture_of(lambda: show_job(*read_job(self._operator, str(number), runs=_RUNS), self._profiles))
        )

    def _list_of(self, name: str) -> tuple[TablePlace, Read]:
        table = TablePlace(f"jobs of {self._view[:-1]} {one_line(name)}", JOB_COLUMNS, ("priority", "attempt", "run_at", "lane"))
        wanted = {"lanes": JobFilter(lanes=(name,)), "tasks": JobFilter(tasks=(name,))}

        def read() -> None:
            if self._view in wanted:
                found = self._operator.list_sync(JobQuery(filter=wanted[self._view])).jobs
            else:
                held = [one.jobs for one in self._operator.workers.list_sync() if one.id == name]
                found = tuple(self._operator.get_sync(str(job.id)) for jobs in held for job in jobs[:_MOST_HELD])
            table.fill(job_rows(found))

        return table, read

    def _draw(self) -> None:
        columns, height = size()
        shown = self._place.lines(max(1, height - _RESERVED))
        lines = [self._title()[:columns], self._tabs(columns), *shown]
        note = self._problem or f"{_KEYS}  (every {format_duration(self._every)})"
        draw([*lines[: height - 2], dim(note[: columns - 1])])

    def _title(self) -> str:
        if self._opened:
            return self._place.title
        return "" if self._found is None else headline(self._found.summary)

    def _tabs(self, room: int) -> str:
        """Name the views and the order, as far as there is room."""
        names = [f"{place} {name}" for place, name in enumerate(VIEWS, 1)]
        drawn = [_tab(text, is_here=name == self._view) for text, name in zip(names, VIEWS, strict=True)]
        widths = [len(text) + 2 for text in names]
        while widths and sum(widths) > room:
            widths.pop()
        order = self._place.order[: max(0, room - sum(widths) - 2)]
        return f"{''.join(drawn[: len(widths)])}  {dim(order)}" if order else "".join(drawn[: len(widths)])


def _tab(text: str, *, is_here: bool) -> str:
    if not is_here:
        return f" {text} "
    return f"\x1b[7m {text} \x1b[0m" if has_colour() else f"[{text}]"
