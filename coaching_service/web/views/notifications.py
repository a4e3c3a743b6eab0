"""Settings: the notifications of the signed-in coach, and the devices that show them."""

from __future__ import annotations

from coaching_service.core.auth.access import session_only
from coaching_service.web.pages import Pages
from coaching_service.web.views.notification_forms import COACH_FORM, COACH_KINDS, declare

pages = Pages("/app/settings/notifications")
declare(pages, session_only(), "settings", COACH_KINDS, COACH_FORM)
