from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from statistics import median

import pytest

import windlass
from windlass.client.operations import Operator
from windlass.core.late_names import LateNoun
from windlass.store.store import Store

HEAVY = ("pydantic", "psycopg", "psycopg_pool", "fastapi", "click", "sqlite3", "pysqlite3")
TIMED = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def seconds(module: str) -> float:
    return float(run(TIMED.format(module)))


def test_importing_windlass_costs_little() -> None:
    # In turns: whoever else uses the machine slows both of a pair.
    ratios = [seconds("windlass.app") / seconds("asyncio, pydantic") for _ in range(9)]
    assert median(ratios) <= 1.5, ratios
    ratios = [seconds("windlass") / seconds("asyncio, pydantic") for _ in range(3)]
    assert median(ratios) <= 0.5, ratios


def test_an_application_with_plain_tasks_loads_no_driver_and_no_pydantic() -> None:
    code = f"""
import sys
from windlass import JobContext, Windlass
app = Windlass("sqlite:///never-opened.db")
@app.task
async def send(ctx: JobContext, to: str) -> None: ...
send.job(to="ann")
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert run(code).strip() == "[]"


def test_every_public_name_is_there() -> None:
    for name, home in windlass._HOME_OF.items():
        assert getattr(windlass, name) is getattr(import_module(home), name)
        assert name in dir(windlass)


def test_a_name_that_is_not_there_is_an_ordinary_error() -> None:
    assert not hasattr(windlass, "Worm")


@pytest.mark.parametrize("owner", [Store, Operator])
def test_a_noun_is_of_the_class_that_its_annotation_names(owner: type[Store | Operator]) -> None:
    late = {name: one for name, one in vars(owner).items() if isinstance(one, LateNoun)}
    assert len(late) >= 19
    for name, one in late.items():
        assert owner.__annotations__[name] == f"LateNoun[{type(one.__get__(None, owner)).__name__}]"
