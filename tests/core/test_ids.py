from __future__ import annotations

from uuid import RFC_4122, UUID, uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.core.ids import MAX_EXECUTION, MAX_JOB, execution_uuid, job_uuid, parse_execution_id, parse_job_id
from windlass.errors import InvalidInput

JOBS = st.integers(min_value=1, max_value=MAX_JOB)
EXECUTIONS = st.integers(min_value=1, max_value=MAX_EXECUTION)


def flipped(uuid: UUID, bit: int) -> str:
    return str(UUID(int=uuid.int ^ (1 << bit)))


@given(JOBS)
@example(1)
@example(2**62 - 1)
@example(2**62)
@example(MAX_JOB)
def test_a_job_number_survives_its_uuid(number: int) -> None:
    assert parse_job_id(str(job_uuid(number))) == number


@given(JOBS, EXECUTIONS)
@example(MAX_JOB, MAX_EXECUTION)
@example(1, 1)
def test_an_execution_survives_its_uuid(job: int, number: int) -> None:
    assert parse_execution_id(str(execution_uuid(job, number))) == (job, number)


@given(JOBS)
def test_a_job_uuid_is_version_8_of_the_standard_variant(number: int) -> None:
    uuid = job_uuid(number)
    assert (uuid.version, uuid.variant) == (8, RFC_4122)


def test_the_layout_never_changes_since_clients_keep_uuids() -> None:
    assert str(job_uuid(1)) == "b17d0000-0000-8002-8000-000000000001"
    assert str(job_uuid(MAX_JOB)) == "b17d0000-0000-8003-bfff-ffffffffffff"
    assert str(execution_uuid(42, 7)) == "b17d0000-0007-8004-8000-00000000002a"


@given(JOBS)
def test_a_job_number_is_accepted_as_text_and_as_a_number(number: int) -> None:
    assert parse_job_id(str(number)) == parse_job_id(number) == number


@given(JOBS)
def test_a_job_uuid_is_accepted_in_capitals(number: int) -> None:
    assert parse_job_id(str(job_uuid(number)).upper()) == number


@given(JOBS, st.integers(min_value=0, max_value=127))
def test_a_wrong_bit_in_a_job_uuid_never_gives_the_same_job(number: int, bit: int) -> None:
    damaged = flipped(job_uuid(number), bit)
    assert parse_job_id(damaged) != number
    assert parse_execution_id(damaged) is None


@given(JOBS, EXECUTIONS, st.integers(min_value=0, max_value=127))
def test_a_wrong_bit_in_an_execution_uuid_never_gives_the_same_execution(job: int, number: int, bit: int) -> None:
    damaged = flipped(execution_uuid(job, number), bit)
    assert parse_execution_id(damaged) != (job, number)
    assert parse_job_id(damaged) is None


@given(JOBS, EXECUTIONS)
def test_kinds_are_never_mistaken_for_each_other(job: int, number: int) -> None:
    assert parse_job_id(str(execution_uuid(job, number))) is None
    assert parse_execution_id(str(job_uuid(job))) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-5",
        "+5",
        " 5",
        "5\n",
        "007",
        "1_000",
        "1.0",
        "1e3",
        "0x10",
        "٣",
        "²",
        "five",
        str(2**63),
        "9" * 5000,
        0,
        -1,
        2**63,
        True,
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "b17d0000-0000-8002-8000-000000000000",
        "b17d0001-0000-8002-8000-000000000001",
        "b17d0000-0000-8006-8000-000000000001",
        "b17d0000-0000-4002-8000-000000000001",
        "b17d0000-0000-8002-c000-000000000001",
        "b17d000000008002800000000000001",
        "b17d0000000080028000000000000001",
        "{b17d0000-0000-8002-8000-000000000001}",
        "urn:uuid:b17d0000-0000-8002-8000-000000000001",
        "b17d0000-0000-8002-8000-00000000000\uff11",
        "b17d0000-0000-8002-8000-000000000001\n",
    ],
)
def test_what_is_no_job_id_decodes_to_none(text: str | int) -> None:
    assert parse_job_id(text) is None


@pytest.mark.parametrize("text", ["", "1", "1/2", "b17d0000-0000-8004-8000-000000000001", "b17d0000-0001-8004-8000-000000000000"])
def test_what_is_no_execution_id_decodes_to_none(text: str) -> None:
    assert parse_execution_id(text) is None


def test_a_random_uuid_does_not_decode() -> None:
    assert parse_job_id(str(uuid4())) is None


@given(st.text())
def test_any_text_can_be_asked_for(text: str) -> None:
    assert parse_execution_id(text) is None
    assert parse_job_id(text) is None or parse_job_id(text) == int(text)


@pytest.mark.parametrize("number", [0, -1, 2**63])
def test_a_number_no_job_has_gets_no_uuid(number: int) -> None:
    with pytest.raises(InvalidInput, match="job number"):
        job_uuid(number)


@pytest.mark.parametrize("number", [0, -1, 2**32])
def test_a_number_no_execution_has_gets_no_uuid(number: int) -> None:
    with pytest.raises(InvalidInput, match="execution number"):
        execution_uuid(1, number)
