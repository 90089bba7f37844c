from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.faults.history import Ack, put_together
from tests.faults.ledger import Ledger, read_ledger

DOOMED = """
import os, signal, sys
from pathlib import Path
from tests.faults.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
ledger.write("start", 7, 11, 1, 1, "nap", 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_wrote_is_there(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DOOMED, str(tmp_path)], check=False)
    assert done.returncode == -9
    [line] = read_ledger(tmp_path)
    assert (line.word, line.fields) == ("start", ("7", "11", "1", "1", "nap", "1"))


def test_half_a_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "5.ledger").write_text("10 cancelled 7\n11 cancelled 8")
    history = put_together(read_ledger(tmp_path))
    assert history.cancelled == {7}


def test_lines_become_runs_and_answers(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.write("sent", "rerun", "a", "b", "c", "d")
    ledger.write("acked", "a", 7, 0, "rerun")
    ledger.write("unknown", "TimeoutError", "b")
    ledger.write("rolled_back", "c")
    ledger.write("start", 7, 11, 1, 1, "nap", 1)
    ledger.write("end", 7, 11, "ok")
    ledger.write("start", 7, 11, 1, 1, "nap", 1)
    history = put_together(read_ledger(tmp_path))
    assert history.acks == [Ack("a", 7, is_duplicate=False, on_conflict="rerun")]
    # What nobody answered, and what the enqueuer was killed in the middle of.
    assert history.sent == {"b": "rerun", "d": "rerun"}
    assert history.rolled_back == {"c"}
    [run] = history.runs.values()
    assert (run.how, run.starts) == ("ok", 2)


def test_a_process_that_starts_itself_anew_ends_its_runs(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.write("start", 7, 11, 1, 1, "nap", 1)
    ledger.write("anew")
    ledger.write("start", 7, 12, 2, 1, "nap", 1)
    history = put_together(read_ledger(tmp_path))
    assert [(run.how, run.ended_ns is None) for run in history.runs.values()] == [("replaced", False), (None, True)]
