"""How much one client may ask of the server."""

from __future__ import annotations

from datetime import timedelta

from windlass.core.record import record


@record(kw_only=True)
class HttpLimits:
    """Bounds that hold for every request."""

    body_bytes: int = 8 * 1024 * 1024
    public_body_bytes: int = 64 * 1024
    """Where no credential is asked for."""
    held_body_bytes: int = 64 * 1024 * 1024
    """How much of large bodies may be in memory at a time, all requests together; of each the first 64 KiB do not count."""
    header_bytes: int = 32 * 1024
    headers_within: timedelta = timedelta(seconds=10)
    """From the first byte (or from connecting) to the end of the headers."""
    body_within: timedelta = timedelta(seconds=30)
    """Where no credential is asked for, a body has only as long as headers have."""
    answer_within: timedelta = timedelta(seconds=60)
    """For everything after the body; then, as long again, for a client that does not read. Streams have no end."""
    pull_within: timedelta = timedelta(seconds=30)
    """How long a pull may wait for a job."""
    idle: timedelta = timedelta(seconds=15)
    """How long a connection may stay open between two requests."""
    connections: int = 512
    """How many may be open; one more closes the one that has waited longest for its client."""
    connections_of_address: int = 256
    """How many may be open from one address, unless it is loopback or a trusted proxy."""
    costly_reads: int = 1
    """How many lists, searches and pages are read at a time; between two there is a rest for everything else."""
    waiting_reads: int = 400
    """How many may wait for their turn; one more is refused for now."""
    read_within: timedelta = timedelta(seconds=4)
    """How long one waits for its turn before it is refused for now."""
    read_for: timedelta = timedelta(seconds=5)
    """How long one read for a list, a search, a page or a download may take; then it is ended, and its client is asked to read
    less."""
    exports: int = 4
    """How many downloads of items there may be at a time."""
    streams: int = 200
    """How many may listen to events; one more is refused for now."""
    stream_within: timedelta = timedelta(minutes=15)
    """How long one may listen; a client that reconnects needs its credentials again."""
    failed_logins: int = 10
    """A minute and address, on the login page."""
    failed_credentials: int = 60
    """A minute and address, in headers."""
    audited_refusals: int = 10
    """A minute and address."""
    audited_refusals_of_all: int = 600
    """An hour; those beyond it, and beyond the share of an address, are counted in one line a minute."""
