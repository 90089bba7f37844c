"""The model and the stores in lock-step: whatever is asked of one is asked of all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.model import wishes
from tests.model.bench import UNKNOWN, Bench, History, Refusal, Side, attempt, differences
from tests.model.gates import Holder
from tests.model.model import Ending, LetterAt, Model, Moves, Progress, Row, Slot, Told
from tests.model.reports import Reports
from tests.model.wishes import LEASE, Order, Words
from windlass.core.contact import Contact
from windlass.core.gate import GateKind
from windlass.core.job import CLOSED, Claimed, JobState, Lease, Slices, UniqueScope
from windlass.core.outcome import Finish, Run, decide
from windlass.core.retention import Retention
from windlass.store.doctor import BrokenRule, check
from windlass.testing import FakeClock

T = TypeVar("T")
MOST_JOBS = 14
CHECKED_EVERY = 10
ALL = 500


@dataclass
class Holding:
    """What a worker believes to hold; it is not told when it is wrong."""

    claim: Claimed
    started_at: datetime | None
    ending: Ending | None = None

    def end(self, kind: int, now: datetime) -> Ending:
        """Decide once how the run ended; whatever is sent later says the same."""
        if self.ending is None:
            choices = wishes.UNSTARTED_ENDINGS if self.started_at is None else wishes.ENDINGS
            self.ending = Ending(self.claim, choices[kind % len(choices)](now), self.started_at, now)
        return self.ending


class LockStep(RuleBasedStateMachine):
    """Every verb, in any order, at any time, once or again."""

    bench: ClassVar[Bench]

    def __init__(self) -> None:
        super().__init__()
        self.bench.reset()
        self.clock = FakeClock(wishes.START)
        self.model = Model()
        self.reports = Reports(self.model)
        self.holdings: list[Holding] = []
        self.old_slices = Slices(1, ())
        self.repeat: Callable[[], None] = _nothing
        self.last_token = 0
        self.checked: dict[int, object] = {}
        self.steps = 0
        self.is_sound = True

    @initialize(orders=st.lists(wishes.any_orders, min_size=2, max_size=6))
    def begin_with(self, orders: list[Order]) -> None:
        self._agree(lambda side: side.declare(self.clock.now()), self.model.gates.declare)
        self._enqueue(orders)

    @precondition(lambda self: len(self.model.jobs) < MOST_JOBS)
    @rule(order=wishes.any_orders)
    def enqueue(self, order: Order) -> None:
        self._enqueue([order])

    @precondition(lambda self: len(self.model.jobs) < MOST_JOBS)
    @rule(order=wishes.keyed_orders)
    def enqueue_with_a_key(self, order: Order) -> None:
        self._enqueue([order])

    @precondition(lambda self: len(self.model.jobs) < MOST_JOBS)
    @rule(orders=st.lists(wishes.any_orders, min_size=2, max_size=5))
    def enqueue_many(self, orders: list[Order]) -> None:
        self._enqueue(orders)

    @precondition(lambda self: len(self.model.jobs) < MOST_JOBS)
    @rule(order=wishes.keyed_recurring_orders, conflicts=st.lists(wishes.keyed_orders, min_size=1, max_size=3))
    def enqueue_one_key_many_times(self, order: Order, conflicts: list[Order]) -> None:
        same = [other._replace(task=order.task, key=order.key) for other in conflicts]
        self._enqueue([order, *same])

    @precondition(lambda self: len(self.model.jobs) < MOST_JOBS)
    @rule(orders=st.lists(wishes.keyed_orders, min_size=2, max_size=3), kinds=wishes.kinds)
    def contend_for_a_key(self, orders: list[Order], kinds: list[int]) -> None:
        """Run several jobs of one key at once, which a key that is free while its job runs allows."""
        before = len(self.holdings)
        for order in orders:
            self._enqueue([order._replace(task="crawl", key="k", scope=UniqueScope.PENDING, priority=9, wait=timedelta(0))])
            self._claim(1, self._look(), started=True)
        taken = self.holdings[before:]
        self._finish([holding.end(kind, self.clock.now()) for holding, kind in zip(taken, kinds, strict=False)])

    @rule(
        limit=st.sampled_from((1, 1, 2, 3, 10)),
        started=st.booleans(),
        lane=st.sampled_from((None, None, "fast")),
        is_stale=st.sampled_from((False, False, True)),
    )
    def claim(self, limit: int, lane: str | None, *, started: bool, is_stale: bool) -> None:
        slices = self.old_slices if is_stale else self._look()
        self._claim(limit, _only(slices, lane), started=started)
        self.old_slices = slices

    @rule(is_stale=st.sampled_from((False, False, True)))
    def claim_suspect(self, *, is_stale: bool) -> None:
        slices = self.old_slices if is_stale else self._look()
        self._claim_suspect(slices)
        self.old_slices = slices

    @precondition(lambda self: self.model.jobs)
    @rule(places=wishes.several_places)
    def begin(self, places: list[int]) -> None:
        """Start what a worker had fetched ahead; the store hears of it later, or never."""
        for holding in self._held(places):
            holding.started_at = holding.started_at or self.clock.now()

    @precondition(lambda self: self.model.jobs)
    @rule(places=wishes.several_places, is_told=st.booleans())
    def renew(self, places: list[int], *, is_told: bool) -> None:
        self._renew(self._held(places), is_told=is_told)

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places, count=st.integers(0, 9), cursor=st.sampled_from((None, "page 2")))
    def progress(self, place: int, count: int, cursor: str | None) -> None:
        for holding in self._held([place]):
            self._progress(holding, Progress(holding.claim.id, holding.claim.token, count, cursor))

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places, phones=wishes.phones)
    def add_items(self, place: int, phones: list[str]) -> None:
        for holding in self._held([place]):
            self._add_items(holding, phones)

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places, words=wishes.any_words)
    def report(self, place: int, words: Words) -> None:
        for holding in self._held([place]):
            self._report(holding, words)

    @precondition(lambda self: self.model.jobs)
    @rule(limit=st.integers(1, 3), words=st.lists(wishes.any_words, min_size=1, max_size=4))
    def report_on_everything(self, limit: int, words: list[Words]) -> None:
        for holding in self._go_to_work(limit, started=True):
            for said in words:
                self._report(holding, said)

    @precondition(lambda self: self.model.jobs)
    @rule(places=wishes.several_places, kinds=wishes.kinds)
    def finish(self, places: list[int], kinds: list[int]) -> None:
        held = self._held(places)
        self._finish([holding.end(kind, self.clock.now()) for holding, kind in zip(held, kinds, strict=False)])

    @precondition(lambda self: self.model.jobs)
    @rule(places=wishes.several_places, kinds=wishes.kinds)
    def decide(self, places: list[int], kinds: list[int]) -> None:
        """End a run whose report is on the way for longer."""
        for holding, kind in zip(self._held(places), kinds, strict=False):
            holding.end(kind, self.clock.now())

    @precondition(lambda self: self.model.jobs)
    @rule(places=wishes.several_places, is_reversed=st.booleans(), is_doubled=st.booleans())
    def deliver(self, places: list[int], *, is_reversed: bool, is_doubled: bool) -> None:
        """Bring reports late, out of order, twice in one batch."""
        ended = [holding.ending for holding in self._live_first() if holding.ending is not None]
        endings = _pick(ended, places)
        self._finish((endings[::-1] if is_reversed else endings) + endings[: 1 if is_doubled else 0])

    @precondition(lambda self: self.model.jobs)
    @rule(kinds=wishes.kinds, limit=st.integers(1, 4), rounds=st.integers(1, 4))
    def work(self, kinds: list[int], limit: int, rounds: int) -> None:
        """Take what is due and be done with it at once, a few times over."""
        for first in range(rounds):
            taken = self._go_to_work(limit, started=True)
            endings = kinds[first:] + kinds[:first]
            self._finish([holding.end(kind, self.clock.now()) for holding, kind in zip(taken, endings, strict=False)])

    @precondition(lambda self: self.model.jobs)
    @rule(limit=st.integers(1, 3), has_begun=st.booleans(), is_renewed=st.booleans(), is_told=st.booleans())
    def cancel_what_was_fetched_ahead(self, limit: int, *, has_begun: bool, is_renewed: bool, is_told: bool) -> None:
        """Cancel between two heartbeats: the store learns only from the stopped report whether anything ran."""
        taken = self._go_to_work(limit, started=False)
        for holding in taken if has_begun else []:
            holding.started_at = holding.started_at or self.clock.now()
        self._operate("cancel", [holding.claim.id for holding in taken])
        if is_renewed:
            self._renew(taken, is_told=is_told)
        self._stop([Told(job.claim.id, job.claim.token, job.started_at if is_told else None) for job in taken])

    @precondition(lambda self: self.model.jobs)
    @rule(places=wishes.several_places, is_told=st.booleans())
    def stop(self, places: list[int], *, is_told: bool) -> None:
        held = self._held(places)
        self._stop([Told(job.claim.id, job.claim.token, job.started_at if is_told else None) for job in held])

    @rule(limit=st.sampled_from((1, 3, ALL)))
    def reclaim(self, limit: int) -> None:
        self._reclaim(limit)

    @rule(limit=st.sampled_from((1, 3, ALL)))
    def promote(self, limit: int) -> None:
        self._promote(limit)

    @rule(limit=st.sampled_from((1, ALL)))
    def spawn(self, limit: int) -> None:
        self._spawn(limit)

    @precondition(lambda self: self.model.jobs)
    @rule(
        wish=st.sampled_from(wishes.MOVES), places=wishes.several_places, is_sloppy=st.sampled_from((False, False, False, True))
    )
    def operate(self, wish: tuple[str, dict[str, Any]], places: list[int], *, is_sloppy: bool) -> None:
        numbers = [row.id for row in _pick(self._rows_open_first(), places)] + [UNKNOWN] * is_sloppy
        self._operate(wish[0], numbers, **wish[1])

    @precondition(lambda self: self.model.jobs)
    @rule(wish=st.sampled_from(wishes.MOVES), places=wishes.several_places)
    def operate_on_runs(self, wish: tuple[str, dict[str, Any]], places: list[int]) -> None:
        self._operate(wish[0], sorted({holding.claim.id for holding in self._held(places)}), **wish[1])

    @precondition(lambda self: self.model.jobs)
    @rule(status=st.sampled_from(wishes.OVERRIDES), places=wishes.several_places, is_run=st.booleans())
    def override(self, status: JobState, places: list[int], *, is_run: bool) -> None:
        if is_run:
            numbers = sorted({holding.claim.id for holding in self._held(places)})
        else:
            numbers = [row.id for row in _pick(self._rows_closed_first(), places)]
        self._override(status, numbers)

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places)
    def delete(self, place: int) -> None:
        self._operate("delete", [row.id for row in _pick(self._rows_closed_first(), [place])])

    @precondition(lambda self: 0 < len(self.model.jobs) < MOST_JOBS)
    @rule(places=wishes.several_places)
    def clone(self, places: list[int]) -> None:
        self._clone([row.id for row in _pick(self._rows_closed_first(), places)])

    @precondition(lambda self: self._letters())
    @rule(places=wishes.several_places)
    def acknowledge(self, places: list[int]) -> None:
        letters = _pick(self._letters(), places)
        self._again(
            lambda: self._agree(
                lambda side: side.acknowledge(letters, self.clock.now(), "ann"),
                lambda: self.model.acknowledge(letters, self.clock.now(), "ann"),
            )
        )

    @precondition(lambda self: self._letters())
    @rule(places=wishes.several_places)
    def requeue(self, places: list[int]) -> None:
        letters = _pick(self._letters(), places)
        self._again(
            lambda: self._agree(
                lambda side: side.requeue(letters, self.clock.now()), lambda: self.model.requeue(letters, self.clock.now())
            )
        )

    @precondition(lambda self: self._rows_in(JobState.FAILED))
    @rule(places=wishes.several_places)
    def retry_failures(self, places: list[int]) -> None:
        failures = self._rows_in(JobState.FAILED) + self._rows_in(JobState.SCHEDULED)
        self._operate("retry", [row.id for row in _pick(failures, places)])

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places, kind=st.integers(0, len(wishes.EDITS) - 1))
    def edit_a_run(self, place: int, kind: int) -> None:
        for holding in self._held([place]):
            self._edit(holding.claim.id, kind)

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places, kind=st.integers(0, len(wishes.EDITS) - 1))
    def edit(self, place: int, kind: int) -> None:
        for row in _pick(self._rows_open_first(), [place]):
            self._edit(row.id, kind)

    @rule(gate=st.sampled_from(wishes.GATES), is_pause=st.sampled_from((False, False, True)))
    def move_gate(self, gate: tuple[GateKind, str], *, is_pause: bool) -> None:
        """Pause or resume a lane or a task: a claim made from an older view takes nothing."""
        now = self.clock.now()
        if is_pause:
            self._agree(lambda side: side.pause_gate(*gate, now), lambda: self.model.gates.pause(*gate))
        else:
            self._resume(gate)

    @rule(for_=st.sampled_from((None, wishes.seconds(5), wishes.seconds(30))), is_opened=st.booleans())
    def operate_the_breaker(self, for_: timedelta | None, *, is_opened: bool) -> None:
        gates, now = self.model.gates, self.clock.now()
        if is_opened:
            self._agree(lambda side: side.force_open(for_, now), lambda: gates.force_open(for_, now))
        else:
            self._agree(lambda side: side.reset_breaker(now), gates.reset)

    @rule(failures=st.integers(0, 3), succeeded=st.booleans())
    def record(self, failures: int, *, succeeded: bool) -> None:
        """Tell the breaker of results in a row."""
        self._record(Holder(), succeeded=succeeded, failures=failures)

    @precondition(lambda self: self.model.jobs)
    @rule(place=wishes.places, succeeded=st.booleans())
    def record_a_run(self, place: int, *, succeeded: bool) -> None:
        for holding in self._held([place]):
            self._record(Holder(holding.claim.id, holding.claim.token), succeeded=succeeded, failures=1)

    @rule(place=wishes.places, has_job=st.booleans(), succeeded=st.sampled_from((None, False, True)))
    def pass_the_breaker(self, place: int, *, has_job: bool, succeeded: bool | None) -> None:
        """Ask to go ahead, with a job or without, and tell how it went, or never."""
        held = self._held([place]) if has_job else []
        holder = Holder(held[0].claim.id, held[0].claim.token) if held else Holder()
        now = self.clock.now()
        admitted = self._agree(lambda side: side.admit(holder, now), lambda: self.model.admit(holder, now))
        if not isinstance(admitted, Refusal) and admitted[0] and succeeded is not None:
            self._record(holder if held else Holder(None, admitted[3]), succeeded=succeeded, failures=1)

    @rule(is_stale=st.sampled_from((False, False, True)), by=st.sampled_from((wishes.seconds(0), wishes.seconds(30))))
    def claim_probe(self, by: timedelta, *, is_stale: bool) -> None:
        """Try the breaker with one job, before or after its time."""
        self._pass(by)
        slices = self.old_slices if is_stale else self._look()
        self.last_token += 1
        lease, now = Lease(self.last_token, f"w{self.last_token % 3}", LEASE), self.clock.now()
        parts, suspects = (
            [(part.lane, part.task) for part in found if part.breaker is not None] for found in (slices.open, slices.suspects)
        )
        taken = self._agree(
            lambda side: side.claim_probe(slices, lease, now),
            lambda: self.model.claim_probe(slices.version, parts, suspects, lease=lease, now=now),
        )
        if isinstance(taken, Claimed):
            self.holdings.append(Holding(taken, now))
        self.old_slices = slices

    @rule(pull_id=st.sampled_from((None, "a", "b")), worker=st.sampled_from(("w0", "w1")))
    def pull(self, pull_id: str | None, worker: str) -> None:
        slices = self._look()
        self.last_token += 1
        lease = Lease(self.last_token, worker, LEASE)
        self._again(lambda: self._pull(slices, lease, pull_id))

    @rule()
    def age(self) -> None:
        now = self.clock.now()
        self._again(lambda: self._agree(lambda side: side.age(now), lambda: self.model.age(now)))

    @rule(rules=st.sampled_from(wishes.RETENTIONS))
    def prune(self, rules: Retention) -> None:
        """Let go of what is old; a letter whose job is gone is asked for no more."""
        now = self.clock.now()
        self._agree(lambda side: side.prune(rules, now), lambda: self.model.prune(rules, now))
        self.repeat = _nothing

    @rule(by=st.sampled_from(wishes.ADVANCES))
    def advance(self, by: timedelta) -> None:
        self._pass(by)

    @rule(by=st.sampled_from(wishes.ADVANCES))
    def tick(self, by: timedelta) -> None:
        """Let time pass and upkeep do its round."""
        self._pass(by)
        self._spawn(ALL)
        self._compare_rows()
        self._promote(ALL)

    @rule()
    def lose_the_workers(self) -> None:
        """Nobody renews any more; what they held comes back."""
        self._pass(LEASE * 2)
        self._reclaim(ALL)

    @rule(places=wishes.several_places, kinds=wishes.kinds, order=wishes.plain_orders)
    def lose_the_database(self, places: list[int], kinds: list[int], order: Order) -> None:
        """No call arrives for three leases; afterwards every lease still stands, for nobody has reclaimed it."""
        endings = [holding.end(kind, self.clock.now()) for holding, kind in zip(self._held(places), kinds, strict=False)]
        finishes = [_sent(ending) for ending in endings]
        lease = Lease(self.last_token + 1, "w", LEASE)
        lost: list[Callable[[Side], Awaitable[object]]] = [
            lambda side: side.enqueue([order.job(self.clock.now())], self.clock.now()),
            lambda side: side.claim(self.old_slices, 1, lease, started=True, now=self.clock.now()),
            lambda side: side.reclaim(ALL, self.clock.now()),
        ]
        if finishes:
            lost.append(lambda side: side.finish(finishes, self.clock.now()))
        contacts = {side.name: _steady_contact(self.clock.now()) for side in self.bench.sides}
        with self.bench.outage():
            for ask in lost[1:] if not self.old_slices.open else lost:
                answer = self.bench.ask(ask)
                assert answer in (Refusal("StoreUnavailable"), []), answer
            self._pass(LEASE * 3)
        # Its contact was steady before and is broken now: a process must not take what others could not renew either.
        self._agree(lambda side: side.reclaim(ALL, self.clock.now(), contacts[side.name]), list)
        live = [holding for holding in self.holdings if self._is_live(holding)]
        self._renew(live, is_told=True)
        self._finish(endings)

    @rule()
    def send_again(self) -> None:
        """Repeat the last request, as if its answer had been lost."""
        self.repeat()

    @invariant()
    def agree(self) -> None:
        """Every row, every count and every history that has changed is what the model says."""
        if not self.is_sound:
            return
        self.is_sound = False
        self._compare_rows()
        self._compare_history(only_changed=True)
        self.steps += 1
        if self.steps % CHECKED_EVERY == 0:
            self._consult_the_doctor()
        self.is_sound = True

    def teardown(self) -> None:
        """Nothing may be stranded: whatever is not closed, paused or a template comes to a worker in the end."""
        if not self.is_sound:
            return
        self._compare_history(only_changed=False)
        self._pass(timedelta(days=400))
        self._reclaim(ALL)
        self._pass(timedelta(days=2))
        self._promote(ALL)
        self._open_every_gate()
        while self._look().open:
            self._claim(1000, self._look(), started=True)
        while self._look().suspects:
            self._claim_suspect(self._look())
        reached = {*CLOSED, JobState.PAUSED, JobState.RUNNING}
        assert [row.id for row in self.model.jobs.values() if row.state not in reached and not row.spawn] == []
        self._compare_rows()
        self._consult_the_doctor()

    def _agree(self, ask: Callable[[Side], Awaitable[T]], expected: Callable[[], T]) -> T | Refusal:
        """Ask stores and model the same; the answers must be equal."""
        self.is_sound = False
        answer = self.bench.ask(ask)
        wanted = attempt(expected)
        assert answer == wanted, f"the stores answer {answer}, the model {wanted}"
        self.is_sound = True
        return answer

    def _again(self, request: Callable[[], Any]) -> None:
        self.repeat = request
        request()

    def _enqueue(self, orders: Sequence[Order]) -> None:
        now = self.clock.now()
        jobs = [order.job(now) for order in _unambiguous(orders)]
        self.is_sound = False
        answer = self.bench.ask(lambda side: side.enqueue(jobs, now))
        numbers = [0] * len(jobs) if isinstance(answer, Refusal) else [job.id for job in answer]
        wanted = attempt(lambda: self.model.enqueue(jobs, now, numbers))
        assert answer == wanted, f"the stores answer {answer}, the model {wanted}"
        self.is_sound = True

    def _spawn(self, limit: int) -> None:
        now = self.clock.now()
        self.is_sound = False
        answer = self.bench.ask(lambda side: side.spawn(limit, now))
        assert not isinstance(answer, Refusal), answer
        wanted = self.model.spawn(limit, now, [job.id for job in answer])
        assert answer == wanted, f"the stores answer {answer}, the model {wanted}"
        self.is_sound = True

    def _look(self) -> Slices:
        now = self.clock.now()
        found = self.bench.ask(lambda side: side.slices(now))
        assert not isinstance(found, Refusal), found
        assert found.version == self.model.gates.version
        for parts, is_suspect in ((found.open, False), (found.suspects, True)):
            seen = {(part.lane, part.task): (part.priority, part.run_at, part.breaker) for part in parts}
            assert seen == self.model.slices(now, is_suspect=is_suspect)
        return found

    def _claim(self, limit: int, slices: Slices, *, started: bool) -> None:
        now = self.clock.now()
        self.last_token += 1
        lease = Lease(self.last_token, f"w{self.last_token % 3}", LEASE)
        taken = self._agree(
            lambda side: side.claim(slices, limit, lease, started=started, now=now),
            lambda: self.model.claim(slices.version, _parts(slices), limit, lease, started=started, now=now),
        )
        assert not isinstance(taken, Refusal), taken
        self.holdings += [Holding(job, now if started else None) for job in taken]

    def _claim_suspect(self, slices: Slices) -> None:
        now = self.clock.now()
        self.last_token += 1
        lease = Lease(self.last_token, f"w{self.last_token % 3}", LEASE)
        parts = {(part.lane, part.task) for part in slices.claimable_suspects}
        taken = self._agree(
            lambda side: side.claim_suspect(slices, lease, now),
            lambda: self.model.claim_first(slices.version, parts, lease, now, is_suspect=True),
        )
        assert not isinstance(taken, Refusal), taken
        if taken is not None:
            self.holdings.append(Holding(taken, now))

    def _pull(self, slices: Slices, lease: Lease, pull_id: str | None) -> None:
        now = self.clock.now()
        taken = self._agree(
            lambda side: side.pull(slices, lease, pull_id, now),
            lambda: self.model.pull(slices.version, _parts(slices.merged()), lease, pull_id, now=now),
        )
        if isinstance(taken, Claimed) and all(taken.token != holding.claim.token for holding in self.holdings):
            self.holdings.append(Holding(taken, now))

    def _record(self, holder: Holder, *, succeeded: bool, failures: int) -> None:
        now = self.clock.now()
        self._agree(
            lambda side: side.record(holder, now, succeeded=succeeded, failures=failures),
            lambda: self.model.record(holder, now, succeeded=succeeded, failures=failures),
        )
        self._agree(lambda side: side.get_breaker(now), lambda: self.model.gates.switch)

    def _open_every_gate(self) -> None:
        for gate in wishes.GATES:
            self._resume(gate)
        self._agree(lambda side: side.reset_breaker(self.clock.now()), self.model.gates.reset)

    def _resume(self, gate: tuple[GateKind, str]) -> None:
        now = self.clock.now()
        self._agree(lambda side: side.resume_gate(*gate, now), lambda: self.model.gates.resume(*gate))

    def _renew(self, held: Sequence[Holding], *, is_told: bool) -> None:
        leases = [(job.claim.id, job.claim.token, job.started_at if is_told else None) for job in held]
        self._again(
            lambda: self._agree(
                lambda side: side.renew(leases, LEASE, self.clock.now()),
                lambda: sorted(self.model.renew(leases, LEASE, self.clock.now())),
            )
        )

    def _finish(self, endings: Sequence[Ending]) -> None:
        sent = [_sent(ending) for ending in endings]
        self._again(
            lambda: self._agree(
                lambda side: side.finish(sent, self.clock.now()), lambda: self.model.finish(endings, self.clock.now())
            )
        )

    def _stop(self, told: Sequence[Told]) -> None:
        self._again(
            lambda: self._agree(
                lambda side: side.stop(told, self.clock.now()), lambda: sorted(self.model.stop(told, self.clock.now()))
            )
        )

    def _progress(self, holding: Holding, step: Progress) -> None:
        now = self.clock.now()
        holding.started_at = holding.started_at or now
        self._agree(lambda side: side.progress(step, now), lambda: self.model.progress(step, now))

    def _add_items(self, holding: Holding, phones: list[str]) -> None:
        job, now = holding.claim, self.clock.now()
        holding.started_at = holding.started_at or now
        self._agree(
            lambda side: side.add_items(job.id, job.token, phones, now),
            lambda: self.reports.add(job.id, job.token, phones, now),
        )

    def _report(self, holding: Holding, words: Words) -> None:
        told = words.report(holding.claim.id, holding.claim.token, holding.claim.worker)
        holding.started_at = holding.started_at or self.clock.now()
        self._again(
            lambda: self._agree(
                lambda side: side.report(told, self.clock.now()), lambda: self.reports.report(told, self.clock.now())
            )
        )

    def _reclaim(self, limit: int) -> None:
        now = self.clock.now()
        self._agree(lambda side: side.reclaim(limit, now), lambda: self.model.reclaim(limit, now))

    def _promote(self, limit: int) -> None:
        now = self.clock.now()
        self._agree(lambda side: side.promote(limit, now), lambda: self.model.promote(limit, now))

    def _override(self, status: JobState, asked: Sequence[int]) -> None:
        numbers = self._without_rivals(asked)
        self.last_token += 1
        lease = Lease(self.last_token, "operator:ann", LEASE)
        now = self.clock.now()
        self._agree(
            lambda side: side.override_status(numbers, now, status, lease),
            lambda: self.model.override_status(numbers, now, status, lease),
        )

    def _clone(self, numbers: Sequence[int]) -> None:
        now = self.clock.now()
        self.is_sound = False
        answer = self.bench.ask(lambda side: side.clone(numbers, now))
        made = {} if isinstance(answer, Refusal) else answer.made
        wanted = attempt(lambda: self.model.clone(numbers, now, made))
        assert answer == wanted, f"the stores answer {answer}, the model {wanted}"
        self.is_sound = True

    def _letters(self) -> list[LetterAt]:
        """List the letters, those that stand first."""
        found = [(row.id, index, letter) for row in self.model.jobs.values() for index, letter in enumerate(row.letters)]
        found.sort(key=lambda one: one[2].closed_at is not None)
        return [LetterAt(number, index) for number, index, _ in found]

    def _operate(self, verb: str, asked: Sequence[int], **options: Any) -> None:
        numbers = self._without_rivals(asked) if verb == "retry" else asked
        if not numbers:
            return
        verbs: dict[str, Callable[..., Moves]] = {
            "cancel": self.model.cancel,
            "stop_run": self.model.stop_run,
            "pause": self.model.pause,
            "resume": self.model.resume,
            "disable": self.model.disable,
            "enable": self.model.enable,
            "run_now": self.model.run_now,
            "retry": self.model.retry,
            "boost": self.model.boost,
            "set_priority": self.model.set_priority,
            "bury": self.model.bury,
            "fail": self.model.fail,
            "take_lease": self.model.take_lease,
            "delete": self.model.delete,
        }
        self._again(
            lambda: self._agree(
                lambda side: side.move(verb, numbers, self.clock.now(), **options),
                lambda: verbs[verb](numbers, self.clock.now(), **options),
            )
        )

    def _without_rivals(self, numbers: Sequence[int]) -> list[int]:
        """Leave out who waits behind a holder in the list: who of them comes back is a test of the contract suite."""
        rows = [self.model.jobs[number] for number in numbers if number in self.model.jobs]
        holders: dict[Slot, int] = {(row.task, row.unique_slot): row.id for row in rows if row.unique_slot is not None}
        rivals = {row.id for row in rows if holders.get((row.task, row.unique_key), row.id) != row.id}
        return [number for number in numbers if number not in rivals]

    def _edit(self, number: int, kind: int) -> None:
        now = self.clock.now()
        changes = wishes.EDITS[kind % len(wishes.EDITS)](now)
        self._agree(lambda side: side.edit(number, changes, now), lambda: self.model.edit(number, changes))

    def _pass(self, by: timedelta) -> None:
        self.clock.advance(seconds=by.total_seconds())

    def _is_live(self, holding: Holding) -> bool:
        row = self.model.jobs.get(holding.claim.id)
        return row is not None and row.token == holding.claim.token

    def _live_first(self) -> list[Holding]:
        return sorted(self.holdings, key=lambda holding: (not self._is_live(holding), -holding.claim.token))

    def _held(self, places: Iterable[int]) -> list[Holding]:
        """Take holdings by place, good ones first; when there are none, go to work."""
        if not any(self._is_live(holding) for holding in self.holdings):
            self._go_to_work(3, started=self.last_token % 3 != 0)
        return _pick(self._live_first(), places)

    def _go_to_work(self, limit: int, *, started: bool) -> list[Holding]:
        """Claim what is due, or what is due next."""
        due = [row.run_at for row in self.model.jobs.values() if row.state is JobState.SCHEDULED and not row.spawn]
        if not self._look().merged().open and due:
            self._pass(max(min(due) - self.clock.now(), timedelta(0)))
        self._promote(ALL)
        before = len(self.holdings)
        self._claim(limit, self._look(), started=started)
        if len(self.holdings) == before:
            self._claim_suspect(self._look())
        return self.holdings[before:]

    def _rows_open_first(self) -> list[Row]:
        return sorted(self.model.jobs.values(), key=lambda row: row.state in CLOSED)

    def _rows_closed_first(self) -> list[Row]:
        return sorted(self.model.jobs.values(), key=lambda row: row.state not in CLOSED)

    def _rows_in(self, state: JobState) -> list[Row]:
        return [row for row in self.model.jobs.values() if row.state is state]

    def _compare_rows(self) -> None:
        views = self.bench.each(lambda side: side.look())
        for side, view in zip(self.bench.sides, views, strict=True):
            assert not isinstance(view, Refusal), view
            assert [job.id for job in view.jobs] == sorted(self.model.jobs), side.name
            wrong = {job.id: diff for job in view.jobs if (diff := differences(self.model.jobs[job.id], job))}
            assert wrong == {}, f"{side.name} differs from the model: {wrong}"
            assert view.counts == self.model.counts(), side.name
        assert views == views[:1] * len(views), "the stores differ in what the model leaves open"

    def _compare_history(self, *, only_changed: bool) -> None:
        for number, row in self.model.jobs.items():
            history = [asdict(run) for run in row.runs], [asdict(letter) for letter in row.letters]
            if only_changed and self.checked.get(number, ([], [])) == history:
                continue
            self._compare_one_history(number, history)
            self.checked[number] = history

    def _compare_one_history(self, number: int, history: History) -> None:
        seen = self.bench.ask(lambda side: side.history(number))
        assert seen == history, f"job {number}: the stores remember {seen}, the model {history}"

    def _consult_the_doctor(self) -> None:
        found = self.bench.each(lambda side: check(side.at(self.clock.now()), kept=wishes.RETENTIONS[0]))
        healthy: list[list[BrokenRule]] = [[] for _ in found]
        assert found == healthy, found


def _nothing() -> None:
    """There is no last request yet."""


def _pick(items: Sequence[T], places: Iterable[int]) -> list[T]:
    """Take elements by place, each once."""
    chosen = {place % len(items) for place in places} if items else set()
    return [items[place] for place in sorted(chosen)]


def _steady_contact(now: datetime) -> Contact:
    contact = Contact(LEASE)
    for lease in (2, 1.5, 1, 0.5, 0):
        contact.touch(now - LEASE * lease)
    assert contact.is_steady
    return contact


def _unambiguous(orders: Sequence[Order]) -> list[Order]:
    """Let jobs of one name in a batch be of one task.

    Which of two tasks under one name is inserted is a test of the contract suite.
    """
    tasks: dict[str, str] = {}
    return [order if order.name is None else order._replace(task=tasks.setdefault(order.name, order.task)) for order in orders]


def _parts(slices: Slices) -> set[tuple[str, str]]:
    return {(part.lane, part.task) for part in slices.claimable}


def _only(slices: Slices, lane: str | None) -> Slices:
    return slices if lane is None else slices.select(lambda part: part.lane == lane)


def _sent(ending: Ending) -> Finish:
    run = Run(started_at=ending.started_at, finished_at=ending.decided_at)
    return decide(ending.claim, ending.outcome, run, now=ending.decided_at, rng=Random(0))
