"""The server keeps what its document says, whoever asks; a route that is added is covered by being in the table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tests.support.stores import migrate_sqlite
from tests.web.serving import listening
from tests.web.test_web_tokens import SECRET, signed
from windlass import Windlass
from windlass.core.access import Role
from windlass.web.limits import HttpLimits
from windlass.web.openapi import document, operation, query_names
from windlass.web.routes import ROUTES
from windlass.web.server import Server

EXAMPLES = 60 if os.environ.get("WINDLASS_TEST_LONG") else 2
DOCUMENTED = sorted({route.path for route in ROUTES if not route.is_page})
# A role or a combination of fields may forbid what the schema alone allows.
ACCEPTED = ["2xx", "400", "401", "403", "404", "409"]
REJECTED = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "429", "431"]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tmp_path_factory.mktemp("schema") / "windlass.db"
    migrate_sqlite(path)
    limits = HttpLimits(failed_credentials=10**9, failed_logins=10**9, pull_within=timedelta(milliseconds=5))
    app = Windlass(f"sqlite:///{path}", jwt_secret=SECRET)
    document = Server(app).openapi
    with listening(app, limits) as port:
        made = schemathesis.openapi.from_dict(document)
        made.config.update(base_url=f"http://127.0.0.1:{port}")
        made.config.checks.positive_data_acceptance.expected_statuses = ACCEPTED
        made.config.checks.negative_data_rejection.expected_statuses = REJECTED
        yield made


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_operation_keeps_its_word(schema: Any, mode: GenerationMode) -> None:
    wrong: list[str] = []
    with requests.Session() as session:
        for result in schema.get_all_operations():
            operation = result.ok()
            try:
                fuzz(operation, mode, session)
            except Exception as error:  # noqa: BLE001 - every operation is tried, then all are told
                wrong.append(f"{operation.label}: {error}")
    assert wrong == []


def is_sent(case: Any) -> bool:
    """Say whether what is wrong about a query leaves the client: nothing and empty lists do not."""
    return all(value not in (None, [], {}) for value in (case.query or {}).values())


def fuzz(operation: Any, mode: GenerationMode, session: requests.Session) -> None:
    """Send what an operation takes, or what it must refuse, in every role: making it up costs more than sending it."""

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def run(case: Any) -> None:
        assume(mode is GenerationMode.POSITIVE or is_sent(case))
        for role in Role:
            # Signed and not kept, so that no operation of an admin can revoke it.
            case.call_and_validate(session=session, headers={"Authorization": f"Bearer {signed(role=role.value)}"})

    try:
        run()
    except Unsatisfiable:
        # An operation without parameters: nothing about it can be sent wrongly.
        assert mode is GenerationMode.NEGATIVE


def test_a_route_takes_the_query_parameters_that_it_documents() -> None:
    for route in ROUTES:
        if not route.is_page:
            said = document(ROUTES)["paths"][route.path][route.method.lower()].get("parameters", ())
            assert query_names(operation(route)) == {one["name"] for one in said if one["in"] == "query"}, route.path


def test_every_documented_path_is_in_the_schema(schema: Any) -> None:
    assert sorted({result.ok().path for result in schema.get_all_operations()}) == DOCUMENTED
