"""Notifications of a client: kinds, times, devices, and what each phone needs."""

from __future__ import annotations

from coaching_service.core.auth.access import customer
from coaching_service.web.pages import Pages
from coaching_service.web.views.notification_forms import CLIENT_FORM, CLIENT_KINDS, declare

pages = Pages("/train/settings/notifications")
declare(pages, customer(), "train/settings", CLIENT_KINDS, CLIENT_FORM)
