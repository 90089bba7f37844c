"""What the connection and the listener take over from uvicorn: another version that has it otherwise is found here."""

from __future__ import annotations

import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http import flow_control
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

ROOT = Path(__file__).parents[2]
OVERRIDDEN = {
    "connection_made": ["self", "transport"],
    "connection_lost": ["self", "exc"],
    "data_received": ["self", "data"],
    "send_400_response": ["self", "msg"],
    "on_headers_complete": ["self"],
    "on_body": ["self", "body"],
    "on_message_complete": ["self"],
    "on_response_complete": ["self"],
    "pause_writing": ["self"],
    "resume_writing": ["self"],
    "_unset_keepalive_if_required": ["self"],
}


@pytest.mark.parametrize(("name", "parameters"), OVERRIDDEN.items())
def test_a_method_that_is_replaced_is_called_as_before(name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(HttpToolsProtocol, name)).parameters) == parameters


@pytest.mark.parametrize(
    "written",
    [
        "self.parser = httptools.HttpRequestParser(self)",
        "self.parser.feed_data(data)",
        "self.connections.add(self)",
        "self.flow = FlowControl(transport)",
        "self.client = get_remote_addr(transport)",
        "self.headers.append((name, value))",
        "self.url += url",
        "self.cycle = RequestResponseCycle(",
        "transport=self.transport",
        "on_response=self.on_response_complete",
        "self.cycle.body += body",
        "if len(self.cycle.body) > HIGH_WATER_LIMIT:\n            self.flow.pause_reading()",
        "self.cycle.more_body = False",
    ],
)
def test_the_connection_works_as_the_derived_class_expects(written: str) -> None:
    assert written in inspect.getsource(HttpToolsProtocol)


@pytest.mark.parametrize(
    "written",
    [
        "self.transport.write(",
        "self.response_complete = True",
        "if not self.keep_alive:\n                    self.transport.close()",
        "self.flow.resume_reading()\n            await self.message_event.wait()",
        "self.body = bytearray()",
        "self.more_body = True",
    ],
)
def test_an_answer_is_sent_as_the_derived_class_expects(written: str) -> None:
    assert written in inspect.getsource(RequestResponseCycle)


def test_a_body_that_nobody_reads_stays_small() -> None:
    assert flow_control.HIGH_WATER_LIMIT == 64 * 1024
    assert flow_control.FlowControl.__init__.__code__.co_varnames[:2] == ("self", "transport")
    assert "write_paused" in inspect.getsource(flow_control.FlowControl)


def test_the_server_is_stopped_as_before() -> None:
    assert list(inspect.signature(uvicorn.Server.shutdown).parameters) == ["self", "sockets"]
    assert list(inspect.signature(uvicorn.Server.serve).parameters) == ["self", "sockets"]
    assert list(inspect.signature(uvicorn.Server.capture_signals).parameters) == ["self"]
    assert {"should_exit", "force_exit"} <= set(vars(uvicorn.Server(uvicorn.Config(lambda: None))))


def test_the_installed_version_is_one_that_was_looked_at() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]["server"]
    assert "uvicorn>=0.54,<0.55" in wanted
    assert version("uvicorn").startswith("0.54.")
