"""The settings of a process that runs Django's own tests of backends on Windlass."""

from __future__ import annotations

import os

from tests.django.conformance.framework import stand_in

SECRET_KEY = "known to everybody who reads this file"
USE_TZ = True
INSTALLED_APPS = ["windlass.django"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["CONFORMANCE_FILE"],
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
        "TEST": {"NAME": os.environ["CONFORMANCE_FILE"] + ".test"},
    }
}
TASKS = {"default": {"BACKEND": "windlass.django.WindlassBackend"}}
stand_in()
