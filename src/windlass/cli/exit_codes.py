"""What commands answer to who called them."""

from __future__ import annotations

REFUSED = 1
"""It was refused, or there is no such thing; it may work another time."""
# Starting the command again would not help.
BAD_USAGE = 2
"""The arguments, the settings or the schema are wrong."""
