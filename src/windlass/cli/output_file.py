"""Where a command writes much: the standard output, or a file that is there once it is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from windlass.errors import ConfigError


@contextmanager
def opened_output(output: Path | None) -> Iterator[Callable[[str], object]]:
    """Open where to write: the standard output, or a file that takes its name when it is whole."""
    if output is None:
        # As they are: a terminal's own line ends would break a table's quoted lines.
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]  # always a file of ours
        yield sys.stdout.write
        sys.stdout.flush()
        return
    draft = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file.write
        draft.replace(output)
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
