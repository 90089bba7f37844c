"""What the doctor finds, and how grave it is."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypedDict

from windlass.core.audit import Actor
from windlass.core.record import record

Notice = Callable[[str, int], None]
"""Called with the check that runs or the rows that are read, and the number so far."""


class DoctorOptions(TypedDict, total=False):
    """What an examination may be asked to do beside the quick checks."""

    deep: bool
    """Read every row."""
    repair: bool
    """Count again first, and repair what is wrong."""
    actor: Actor
    """The principal of a repair in the audit log."""
    notice: Notice


class Severity(StrEnum):
    """How grave a finding is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but an operator should look at it."""
    PROBLEM = "problem"
    """Something does not work, or will not for long."""


@record
class Finding:
    """What one check found: a plain sentence, the command or setting that helps, and examples."""

    check: str
    verdict: Severity
    message: str
    remedy: str | None = None
    details: tuple[str, ...] = ()


@record
class Examination:
    """Every finding, in the order of the checks."""

    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Severity:
        """The gravest of all."""
        found = {finding.verdict for finding in self.findings}
        return next((one for one in (Severity.PROBLEM, Severity.WARNING) if one in found), Severity.OK)

    def count(self, verdict: Severity) -> int:
        """Count the findings that are as grave as this."""
        return sum(finding.verdict is verdict for finding in self.findings)


def ok(check: str, message: str) -> Finding:
    """Report that all is well."""
    return Finding(check, Severity.OK, message)


def warning(check: str, message: str, remedy: str, *details: str) -> Finding:
    """Report something an operator should look at."""
    return Finding(check, Severity.WARNING, message, remedy, details)


def problem(check: str, message: str, remedy: str, *details: str) -> Finding:
    """Report what does not work."""
    return Finding(check, Severity.PROBLEM, message, remedy, details)
