"""The model for Django's permissions and admin; the tables of Windlass are not Django's."""

from __future__ import annotations

from django.db import models


class Jobs(models.Model):  # noqa: DJ008 - there is none to be shown
    """Stands for the jobs of the queue, which no query of Django's reads."""

    class Meta:
        """No table, and one permission."""

        managed = False
        default_permissions = ()
        permissions = (("operate", "Can operate the queue: retry, cancel, pause"),)
        verbose_name = "job"
        verbose_name_plural = "jobs"
