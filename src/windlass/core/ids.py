"""Job and execution numbers encoded as version-8 UUIDs, and decoded.

Bits, from the top: mark 16, execution number 32, version 4, kind 11, job number 1, variant 2, job number 62.
"""

from __future__ import annotations

import re
from uuid import UUID

from windlass.errors import InvalidInput

MAX_ID = 2**63 - 1
"""The largest number that a row can have in both databases."""
MAX_JOB = MAX_ID
MAX_EXECUTION = 2**32 - 1

# Two bits apart, so that no single wrong bit turns a job into an execution.
_JOB_KIND = 0b01
_EXECUTION_KIND = 0b10
_MARK = 0xB17D
_VERSION = 0x8
_VARIANT = 0b10
_LOW_BITS = 62
_LOW = 2**_LOW_BITS - 1

# Leading zeros are refused: a job has one spelling per form.
_NUMBER = re.compile(r"[1-9][0-9]{0,18}")
_CANONICAL = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def job_uuid(number: int) -> UUID:
    """Encode a job number as a UUID."""
    _check("job number", number, MAX_JOB)
    return _pack(_JOB_KIND, number, 0)


def execution_uuid(job: int, number: int) -> UUID:
    """Encode an execution, given by its job and its number there, as a UUID."""
    _check("job number", job, MAX_JOB)
    _check("execution number", number, MAX_EXECUTION)
    return _pack(_EXECUTION_KIND, job, number)


def parse_job_id(text: str | int) -> int | None:
    """Read a job number or a job UUID; None means that no job can have this id."""
    if isinstance(text, int):
        return text if not isinstance(text, bool) and 1 <= text <= MAX_JOB else None
    if _NUMBER.fullmatch(text):
        number = int(text)
        return number if number <= MAX_JOB else None
    match _unpack(text):
        case (kind, job, 0) if kind == _JOB_KIND:
            return job
    return None


def parse_execution_id(text: str) -> tuple[int, int] | None:
    """Read an execution UUID as (job number, execution number); None means that no execution can have this id."""
    match _unpack(text):
        case (kind, job, number) if kind == _EXECUTION_KIND and number > 0:
            return job, number
    return None


def _check(field: str, number: int, largest: int) -> None:
    if not 1 <= number <= largest:
        raise InvalidInput(field, number, f"must be from 1 to {largest}")


def _pack(kind: int, job: int, execution: int) -> UUID:
    high = _MARK << 48 | execution << 16 | _VERSION << 12 | kind << 1 | job >> _LOW_BITS
    return UUID(int=high << 64 | _VARIANT << _LOW_BITS | job & _LOW)


def _unpack(text: str) -> tuple[int, int, int] | None:
    if not _CANONICAL.fullmatch(text):
        return None
    bits = int(text.replace("-", ""), 16)
    high = bits >> 64
    if high >> 48 != _MARK or high >> 12 & 0xF != _VERSION or bits >> _LOW_BITS & 0b11 != _VARIANT:
        return None
    job = (high & 1) << _LOW_BITS | bits & _LOW
    return (high >> 1 & 0x7FF, job, high >> 16 & MAX_EXECUTION) if job else None
