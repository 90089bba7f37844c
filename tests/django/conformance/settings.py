"""The settings of a process that runs Django's own tests of backends on Windlass."""

from __future__ import annotations

import json
import os

from tests.django.conformance.framework import stand_in

SECRET_KEY = "known to everybody who reads this file"
USE_TZ = True
INSTALLED_APPS = ["windlass.django"]
DATABASES = {"default": json.loads(os.environ["CONFORMANCE_DATABASE"])}
TASKS = {"default": {"BACKEND": "windlass.django.WindlassBackend"}}
stand_in()
