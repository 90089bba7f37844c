"""A handler's exception as text, wherever the handler ran."""

from __future__ import annotations

import os
import traceback
from types import FrameType, TracebackType

from windlass.core.outcome import ERROR_LIMIT, TRACE_LIMIT, Failure
from windlass.core.payload import sanitise_text
from windlass.errors import WindlassError

_MOST_FRAMES = 50
_OURS = "windlass."
_OUR_FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120 - compared with the names that frames have
_RUNNERS = os.path.dirname(__file__) + os.sep  # noqa: PTH120 - as above
_PACKS = os.path.join(_OUR_FOLDER, "packs", "")  # noqa: PTH118 - as above
"""Handlers that come with Windlass: their frames are kept as those of an application."""


def failure_of(error: BaseException) -> Failure:
    """Describe an exception as Python does, by its type and message; our own errors are clear without their type."""
    kind = sanitise_text(type(error).__name__, ERROR_LIMIT)
    text = sanitise_text(error, ERROR_LIMIT)
    if text and not type(error).__module__.startswith(_OURS):
        text = sanitise_text(f"{kind}: {text}", ERROR_LIMIT)
    return Failure(text or kind, kind, trace_of(error))


def trace_of(error: BaseException) -> str | None:
    """Write the stack trace from the handler's own first frame on; None for an error of ours that no handler had a part in."""
    trace = _below_ours(error.__traceback__)
    if trace is None and isinstance(error, WindlassError):
        return None
    try:
        # What is not an error of ours and came from our code alone is a bug, which the whole trace helps to find.
        lines = traceback.format_exception(type(error), error, trace or error.__traceback__, limit=-_MOST_FRAMES)
    except Exception:  # noqa: BLE001 - an exception whose text cannot be made must still be recorded
        return f"{type(error).__name__}: its stack trace could not be written"
    return sanitise_text("".join(lines), TRACE_LIMIT)


def stack_of(frame: FrameType) -> str:
    """Write the stack of a thread from the handler's own first frame on; all of it, if no handler of ours is on it."""
    frames = traceback.extract_stack(frame)
    ours = [place for place, each in enumerate(frames) if each.filename.startswith(_RUNNERS)]
    below = frames[ours[-1] + 1 :] if ours else frames
    return sanitise_text("".join(traceback.format_list((below or frames)[-_MOST_FRAMES:])), TRACE_LIMIT)


def _below_ours(trace: TracebackType | None) -> TracebackType | None:
    # By file: in a child process our module goes by the name __main__, which in the worker may be the application's.
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(file: str) -> bool:
    return file.startswith(_OUR_FOLDER) and not file.startswith(_PACKS)
