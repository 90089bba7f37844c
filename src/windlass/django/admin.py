"""A link to the dashboard among the pages of Django's admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import NoReverseMatch, reverse

from windlass.django.dashboard import role_of
from windlass.django.models import Jobs


@admin.register(Jobs)
class JobsAdmin(admin.ModelAdmin):
    """Leads to the dashboard, which shows the jobs; Django has no table of them."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the link to users who may look."""
        return role_of(request.user) is not None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let in users who may look."""
        del obj
        return role_of(request.user) is not None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Offer no form: jobs are enqueued by code."""
        del request
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Offer no form."""
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Offer no form."""
        del request, obj
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Go to the dashboard, or show how to set it up."""
        del extra_context
        try:
            return HttpResponseRedirect(reverse("windlass:dashboard"))
        except NoReverseMatch:
            text = 'The dashboard is in no URL: add path("queue/", include("windlass.django.urls")) to urlpatterns.'
            self.message_user(request, text, messages.WARNING)
            return HttpResponseRedirect(reverse("admin:index"))
