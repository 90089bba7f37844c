"""The doctor: what is wrong with the database or the fleet, and what helps."""

from __future__ import annotations

from fastapi import Request
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.finding import Severity
from windlass.web.request_context import context_of
from windlass.web.route import Route


class FindingOut(BaseModel):
    """What one check found."""

    check: str
    verdict: Severity
    message: str
    remedy: str | None
    """The command or setting that helps."""
    details: list[str]


class ExaminationOut(BaseModel):
    """Every check; `verdict` is the gravest."""

    verdict: Severity
    checks: list[FindingOut]


async def get_examination(request: Request) -> ExaminationOut:
    """Run the quick checks of `windlass doctor`, which read no table whole; the deep ones are for the command line."""
    found = await context_of(request).app.doctor()
    checks = [
        FindingOut(check=one.check, verdict=one.verdict, message=one.message, remedy=one.remedy, details=list(one.details))
        for one in found.findings
    ]
    return ExaminationOut(verdict=found.verdict, checks=checks)


ROUTES = (Route("GET", "/api/v1/doctor", Role.OPERATOR, get_examination, is_costly=True),)
