"""The task of the example."""

from __future__ import annotations

import django

from windlass.django import task_options

if django.VERSION >= (6,):
    from django.tasks import task
else:
    from django_tasks import task


@task
@task_options(max_attempts=3, retry={"base": "100ms"}, unique=["order"])
def send_receipt(order: int) -> str:
    """Send nothing, and return a text."""
    return f"receipt for order {order}"
