"""Windlass inside a FastAPI application: its lifespan, and the dependency that passes the jobs to an endpoint."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from windlass.app import Windlass
from windlass.starlette import get_windlass, lifespan

__all__ = ["WindlassDep", "get_windlass", "lifespan"]

WindlassDep = Annotated[Windlass, Depends(get_windlass)]
"""The type of a parameter that is the application the lifespan has opened; tests override `get_windlass`."""
