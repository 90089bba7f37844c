"""Sizes and numbers as people read them."""

from __future__ import annotations

_STEP = 1024
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Write a number of bytes."""
    for unit in _UNITS:
        if count < _STEP or unit == _UNITS[-1]:
            break
        count /= _STEP
    return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"  # noqa: PLR2004 - three digits


def counted(count: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"
