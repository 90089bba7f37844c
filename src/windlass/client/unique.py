"""What makes two jobs of a task the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from windlass.client.arguments import Arguments
from windlass.core.known_task import UniqueRule
from windlass.core.payload import encode
from windlass.errors import InvalidInput

# A longer key helps no reader and costs every index entry.
_LONGEST_SHOWN = 200

KeyRule = Callable[[dict[str, Any]], str | None]


def written_rule(unique: Any) -> UniqueRule | None:
    """Write the `unique` option as processes without the task's code read it."""
    if unique is None or unique is False:
        return None
    if unique is True:
        return "all"
    return "code" if callable(unique) else (unique,) if isinstance(unique, str) else tuple(unique)


def key_by_rule(rule: UniqueRule | None, values: Mapping[str, Any]) -> str | None:
    """Compute the key that a task's code would, from JSON values with the defaults among them."""
    if rule is None or rule == "code":
        return None
    if rule == "all":
        return _shortened(encode(dict(sorted(values.items()))))
    return _key_of(list(rule), dict(values))


def key_rule(unique: Any, arguments: Arguments) -> KeyRule | None:
    """Read the `unique` option: a function of the arguments, some of their names, or True for all of them.

    With a payload model the names are those of its fields.
    """
    if unique is None or unique is False:
        return None
    if callable(unique):
        return lambda given: _key_text(unique(**arguments.complete(given)))
    if unique is True:
        return lambda given: _shortened(encode(dict(sorted(arguments.plain(given).items()))))
    names = [unique] if isinstance(unique, str) else list(unique)
    for name in names:
        # The fields of a payload model are not checked here; a missing one shows at the first enqueue.
        if not arguments.is_model and name not in arguments.names:
            raise _unknown(name, arguments.names)
    return lambda given: _key_of(names, arguments.plain(given))


def _key_of(names: list[str], values: dict[str, Any]) -> str:
    for name in names:
        if name not in values:
            raise _unknown(name, values)
    return _shortened(encode([values[name] for name in names]))


def _unknown(name: str, known: Iterable[str]) -> InvalidInput:
    return InvalidInput("unique", name, f"is not an argument; there are {', '.join(known)}")


def _key_text(key: Any) -> str | None:
    return key if key is None or isinstance(key, str) else encode(key, field="unique")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
