"""What is found in a scrape, and the checks of Prometheus' own tool."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client import parser as text_format
from prometheus_client.openmetrics import parser as openmetrics


def read_openmetrics(text: str) -> list[Metric]:
    """Read a scrape in the form of OpenMetrics."""
    return list(openmetrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def read_text(text: str) -> list[Metric]:
    """Read a scrape in the text format."""
    return list(text_format.text_string_to_metric_families(text))


def sample(found: Iterable[Metric], name: str, **labels: str) -> float:
    """Find the one sample with these labels."""
    [value] = [
        one.value for family in found for one in family.samples if one.name == name and labels.items() <= one.labels.items()
    ]
    return value


_PROMTOOL = shutil.which("promtool")

needs_promtool = pytest.mark.skipif(
    _PROMTOOL is None, reason="NOT CHECKED: promtool is missing; it is in Debian's package prometheus, and .ci/run brings it"
)
"""Skips a test, with a loud reason, where Prometheus' own tool is not installed."""


def promtool(*arguments: str, text: str | None = None) -> None:
    """Let promtool check something."""
    assert _PROMTOOL is not None
    done = subprocess.run([_PROMTOOL, *arguments], input=text, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
