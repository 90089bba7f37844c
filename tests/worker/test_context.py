"""What a handler sets on its context is checked where it is set."""

from __future__ import annotations

from typing import Any, cast

import pytest

from windlass.errors import InvalidInput
from windlass.worker.context import JobContext


@pytest.mark.parametrize("field", ["items_crawled", "items_indexed"])
@pytest.mark.parametrize("value", ['1,"state":"failed"', float("nan"), 1.5, True, -1, 2**63])
def test_a_count_that_is_none_is_refused_with_its_name(field: str, value: Any) -> None:
    nothing = cast("Any", None)
    context = JobContext(nothing, nothing)
    with pytest.raises(InvalidInput, match=field):
        setattr(context, field, value)
    setattr(context, field, 5)
    assert getattr(context, field) == 5
    setattr(context, field, None)
