"""The verbs of a worker, as requests to a server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any, NamedTuple

from windlass.core.breaker import BreakerSpec, BreakerState
from windlass.core.item import Added, encode_items
from windlass.core.job import DEFAULT_RETRY, Claimed, Held, JobState, Lease, Slice, Slices
from windlass.core.outcome import NO_RUN, Ending, Finish, Outcome, Released, Run, Stopped, decide
from windlass.core.payload import encode_object, sanitise_text
from windlass.core.reported_outcome import ReportedOutcome
from windlass.core.retry import PROFILES, Profile
from windlass.errors import LeaseLost, StoreRefused, StoreUnavailable, WindlassError
from windlass.http_client.client import AsyncClient, Client
from windlass.http_client.pulling import Pulled, ReportDone, heartbeat, job_status, pull, report
from windlass.remote_worker.server_errors import translated

log = logging.getLogger("windlass.worker")

SERVED = "served"
"""The one lane a remote worker's pool has: which lanes that means is the server's to look up."""
_WAIT_S = 20.0
_EMPTY_S = 1.0
"""A server that answers sooner that there is nothing is not asked again before this."""
_SHORTEST_LEASE_S = 60.0
_SETTLE_S = 0.2
_AT_ONCE = 8
"""How many ends are on their way at a time."""
_PATIENCE_S = 30.0
_MOST_TEXT = 65_536
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0
_PROCESSING = "processing"
"""What the pull API calls a job that runs."""
_HEAD = datetime.fromtimestamp(0, UTC)
_RETRY = DEFAULT_RETRY.encode()


class Wants(NamedTuple):
    """Which jobs a worker is for."""

    lanes: tuple[str, ...]
    tasks: tuple[str, ...]


class PulledWork:
    """Every verb a worker needs, each a request that may be sent twice and counts once."""

    def __init__(self, client: AsyncClient, wants: Wants, name: str) -> None:
        """Take jobs in the name of a worker that no other has."""
        self._client = client
        self._wants = wants
        self._name = name
        self._numbers = count(1)
        self._pull_id: str | None = None
        """The pull whose answer has not arrived."""
        self._poll: asyncio.Task[Pulled] | None = None
        self._is_closing = asyncio.Event()
        self._outcomes: dict[tuple[int, int], ReportedOutcome] = {}
        self._line = asyncio.Semaphore(_AT_ONCE)
        self.refused: Callable[[WindlassError], None] = lambda _error: None
        """Called when the server refuses this worker."""
        self.stop_asked: Callable[[], None] = lambda: None
        """Called when a job's run is no longer wanted."""

    @property
    def items(self) -> PulledWork:
        """Where runs put what they find."""
        return self

    @property
    def breakers(self) -> ServersBreakers:
        """Where the results of runs are recorded for breakers."""
        return ServersBreakers()

    def decide(
        self,
        job: Claimed,
        outcome: Outcome,
        run: Run = NO_RUN,
        *,
        now: datetime,
        rng: Random,
        profiles: Mapping[str, Profile] = PROFILES,
    ) -> Finish:
        """Keep a run's outcome for the report; the server decides, and what is returned here is only for the log and hooks."""
        self._outcomes[job.id, job.token] = ReportedOutcome(outcome, run)
        return decide(job, outcome, run, now=now, rng=rng, profiles=profiles)._replace(delay=None, run_at=None)

    async def slices(self) -> Slices:
        """Return a slice of every wanted task: whether there is work, only a pull shows."""
        return Slices(0, tuple(Slice(SERVED, task, 0, _HEAD) for task in self._wants.tasks))

    async def claim(self, slices: Slices, limit: int, lease: Lease, *, started: bool = True) -> list[Claimed]:
        """Wait for one job, however long; a pull whose answer was lost is asked again under its name."""
        del slices, limit, started
        loop = asyncio.get_running_loop()
        while not self._is_closing.is_set():
            asked_at = loop.time()
            pulled = await self._pull(_WAIT_S, _length(lease.length))
            if pulled.job is not None:
                return [_claimed(pulled, self._name)]
            await self._rest(asked_at + _EMPTY_S - loop.time())
        return []

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.0)):
                await self._is_closing.wait()

    async def _pull(self, wait_s: float, lease_s: float = _SHORTEST_LEASE_S) -> Pulled:
        if self._pull_id is None:
            self._pull_id = f"{self._name}/{next(self._numbers)}"
        lanes, tasks = self._wants
        ask = pull(lanes=lanes, tasks=tasks, pull_id=self._pull_id, wait_s=wait_s, lease_s=lease_s)
        self._poll = asyncio.ensure_future(self._client.call(ask))
        try:
            with translated(0):
                pulled = await self._poll
        except (LeaseLost, StoreRefused) as error:
            # A wrong token, lane or address: no patience helps.
            refusal = StoreRefused(str(error.__cause__))
            self.refused(refusal)
            raise refusal from error
        except asyncio.CancelledError:
            if not self._is_closing.is_set() or _is_cancelled():
                raise
            return Pulled(job=None)
        finally:
            self._poll = None
        self._pull_id = None
        return pulled

    def close(self) -> None:
        """Ask for no more jobs; a poll under way is broken off."""
        self._is_closing.set()
        if self._poll is not None:
            self._poll.cancel()

    async def settle(self) -> None:
        """Release the job of a pull whose answer did not arrive, if there is one."""
        if self._pull_id is None:
            return
        # The server must have noticed that the poll was broken off, or it might still answer that.
        await asyncio.sleep(_SETTLE_S)
        try:
            job = (await self._pull(0)).job
            if job is not None:
                outcome = ReportedOutcome(Released(has_started=False)).document()
                await self._report(job.id, int(job.attempt_id), "end", outcome=outcome)
        except WindlassError as error:
            log.warning("a job may have been pulled and not begun; its lease will run out: %s", error)

    async def claim_suspects(self, slices: Slices, limit: int, lease: Lease) -> list[Claimed]:
        """Return none: the server hands out suspects as other jobs."""
        del slices, limit, lease
        return []

    async def claim_probe(self, slices: Slices, breaker: str, lease: Lease) -> Claimed | None:
        """Return None: the server hands out probes as other jobs."""
        del slices, breaker, lease
        return None

    async def progress(
        self,
        job_id: int,
        token: int,
        *,
        count: int | None = None,
        cursor: str | None = None,
        message: str | None = None,
    ) -> None:
        """Note how far a run has come; raises LeaseLost when it is no longer ours."""
        goes_on = ReportedOutcome(progress_count=count).document()
        await self._send(job_id, token, outcome=goes_on, cursor=_text(cursor), log=_text(message))

    async def add(self, job_id: int, token: int, found: Sequence[Mapping[str, Any]]) -> Added:
        """Add what a run has found; raises LeaseLost when it is no longer ours."""
        # What the server would refuse is the handler's own mistake, and is refused here without a request.
        encode_items(found)
        done = await self._send(job_id, token, outcome=ReportedOutcome().document(), items=list(found))
        return Added(done.added, done.duplicates)

    async def finish(self, endings: Sequence[Ending]) -> dict[int, JobState]:
        """Report how runs ended; returns the accepted ones with the state each was left in. A missing one lost its lease."""
        states = await asyncio.gather(*map(self._send_end, endings), return_exceptions=True)
        for state in states:
            if isinstance(state, BaseException):
                # The others arrived too: sent once more they are answered as they were.
                raise state
        for ending in endings:
            self._outcomes.pop((ending.id, ending.token), None)
        return {ending.id: state for ending, state in zip(endings, states, strict=True) if isinstance(state, JobState)}

    async def _send_end(self, ending: Ending) -> JobState | None:
        async with self._line:
            try:
                return (await self._end(ending.id, ending.token, self._outcomes[ending.id, ending.token])).state
            except LeaseLost:
                return None

    async def stop(self, runs: Sequence[tuple[int, int, Run]]) -> list[int]:
        """Report that cancelled runs (id, token, run) have stopped."""
        for job_id, token, run in runs:
            with contextlib.suppress(LeaseLost):
                await self._end(job_id, token, ReportedOutcome(Stopped(), run))
        return [job_id for job_id, _, _ in runs]

    async def _end(self, job_id: int, token: int, reported: ReportedOutcome) -> ReportDone:
        # One end for each lease: however often it is sent, it is the same report.
        try:
            return await self._report(job_id, token, "end", outcome=reported.document(), log=_text(reported.run.log_excerpt))
        except StoreRefused as error:
            log.error("job %d: the server refused its end, keeping the decision without content: %s", job_id, error)  # noqa: TRY400
            return await self._report(job_id, token, "bare end", outcome=reported.bare().document())

    async def _send(self, job_id: int, token: int, **fields: Any) -> ReportDone:
        """Report what a handler waits for; a short outage of the server is waited out."""
        key, wait = str(next(self._numbers)), _FIRST_WAIT_S
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE_S
        while True:
            try:
                return await self._report(job_id, token, key, **fields)
            except StoreUnavailable:
                if loop.time() + wait > until:
                    raise
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT_S)

    async def _report(self, job_id: int, token: int, key: str, **fields: Any) -> ReportDone:
        with translated(job_id):
            done = await self._client.call(report(job_id, str(token), key=f"{token}/{key}", **fields))
        if done.should_stop:
            self.stop_asked()
        return done


class ServersBreakers:
    """Breakers are the server's: it gates what it hands out and counts by the reports of runs."""

    async def record(
        self,
        spec: BreakerSpec,
        *,
        succeeded: bool,
        failures: int = 0,
        job_id: int | None = None,
        token: int | None = None,
    ) -> BreakerState:
        """Report to no breaker: the server does."""
        del spec, succeeded, failures, job_id, token
        return BreakerState.CLOSED

    async def count_failures(self, name: str) -> int:
        """Leave the count to the server, which reads it when the run is reported."""
        del name
        return 0


class PulledLeases:
    """Keeps leases alive from the heart's thread, whatever handlers do to the event loop."""

    def __init__(self, client: Client) -> None:
        """Send requests through a blocking client."""
        self._client = client

    async def renew(self, leases: Sequence[tuple[int, int, datetime | None]], length: timedelta) -> list[Held]:
        """Extend leases; what does not come back is lost."""
        held = []
        for job_id, token, _ in leases:
            with contextlib.suppress(LeaseLost), translated(job_id):
                kept = self._client.call(heartbeat(job_id, str(token), _length(length)))
                is_cancelled = kept.should_stop and self._client.call(job_status(job_id)).status != _PROCESSING
                held.append(Held(job_id, token, kept.should_stop, is_cancelled, kept.lease_expires_at))
        return held

    async def record_logs(self, logs: Sequence[tuple[int, int, str]]) -> None:
        """Send nothing: the server gets a log with the end of its run."""


def _text(text: str | None) -> str | None:
    """Bring a text to what JSON can carry; the server cuts it to its own measure."""
    return None if text is None else sanitise_text(text, _MOST_TEXT)


def _length(lease: timedelta) -> float:
    """Return how long a job is asked for; more often renewed than it must be, so that a cancel is noticed soon."""
    return max(lease.total_seconds(), _SHORTEST_LEASE_S)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _claimed(pulled: Pulled, worker: str) -> Claimed:
    job = pulled.job
    assert job is not None  # noqa: S101 - the caller has looked
    return Claimed(
        id=job.id,
        task=job.task,
        lane=job.lane,
        payload=encode_object(dict(job.payload)),
        priority=0,
        run_at=job.pulled_at,
        slot_at=job.slot_at,
        attempt=job.attempts,
        max_attempts=job.max_attempts,
        execution=job.execution,
        crashes=0,
        consecutive_failures=job.consecutive_failures,
        completed_runs=0,
        retry=_RETRY,
        cadence=None,
        timeout_us=None if job.timeout_sec is None else round(job.timeout_sec * 1_000_000),
        token=int(job.attempt_id),
        worker=worker,
        claimed_at=job.pulled_at,
        lease_expires_at=pulled.lease_expires_at or job.pulled_at,
        subject=job.subject,
        correlation_id=job.correlation_id,
        parent_id=job.parent_id,
        last_cursor=job.last_cursor,
        progress_count=job.progress_count,
        result_count=job.result_count,
        target_count=job.target_count,
        traceparent=job.traceparent,
    )
