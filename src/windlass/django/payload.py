"""How the arguments of a Django task travel as the payload of a job, and come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.django.tasks_api import normalize_json

_POSITIONAL = "*args"
"""Where arguments without a name are; no parameter of a function can be called so."""


def payload_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Write arguments by their names, those given by position as a list; raises TypeError for what JSON cannot carry."""
    named: dict[str, Any] = normalize_json(dict(kwargs))
    if _POSITIONAL in named:
        raise TypeError(f"{_POSITIONAL!r} cannot be the name of an argument")
    return {_POSITIONAL: normalize_json(list(args)), **named} if args else named


def arguments_of(payload: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Read the arguments back as they were given: by position, by name."""
    named = dict(payload)
    positional: list[Any] = named.pop(_POSITIONAL, [])
    return positional, named
