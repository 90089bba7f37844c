"""The settings of the example: those of any small project, and the two lines of Windlass."""

from __future__ import annotations

import os

SECRET_KEY = "an example has no secrets"
USE_TZ = True
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "windlass.django"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["SHOP_FILE"],
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},
    }
}
TASKS = {"default": {"BACKEND": "windlass.django.WindlassBackend", "OPTIONS": {"modules": ["shop_tasks"]}}}
