"""Where the dashboard is: `path("queue/", include("windlass.django.urls"))`."""

from __future__ import annotations

from django.urls import path

from windlass.django.dashboard import dashboard

app_name = "windlass"
urlpatterns = [
    path("", dashboard, name="dashboard"),
    path("<path:path>", dashboard, name="page"),
]
