"""Forms that browsers send."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qs

from windlass.web.errors import Refusal

FORM = b"application/x-www-form-urlencoded"
PATHS = frozenset({b"/login", b"/logout"})
"""The only paths that take a form in place of JSON."""
_MOST_FIELDS = 20


def form_of(body: bytes) -> Mapping[str, str]:
    """Read a small form; of a field given twice the last counts."""
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise Refusal(400, "body: is not a form") from None
    return {name: values[-1] for name, values in fields.items()}
