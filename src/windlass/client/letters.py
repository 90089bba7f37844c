"""Dead letters, with what an application knows of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windlass.store.letters import Letters

if TYPE_CHECKING:
    from windlass.client.operations import Operator


class CheckedLetters(Letters):
    """The verbs of dead letters; payloads are checked as an enqueue checks them."""

    def __init__(self, operator: Operator) -> None:
        """Run the calls of `operator`."""
        super().__init__(operator)
        self._operator = operator

    async def _check_payload(self, letter_id: int, payload: Mapping[str, Any]) -> None:
        await self._operator.check_payload((await self.get(letter_id)).task, payload)
