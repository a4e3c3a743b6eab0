"""Settings: the notifications of the signed-in coach, and the devices that show them."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.notification_settings.models import SomeSettings
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views import notification_forms as shared
from coaching_service.web.views.notification_forms import DeviceForm

_PATH = "/app/settings/notifications"
pages = Pages(_PATH)


@pages.get("", access=session_only(), template="settings/notifications.html")
async def notifications_page(ctx: Context) -> dict[str, Any]:
    """Which notifications the coach gets, when, and on which devices."""
    return await shared.read_settings(ctx, shared.COACH_KINDS)


@pages.post("", access=session_only(), form=shared.COACH_FORM, on=notifications_page, idempotent=True)
async def change_notifications(ctx: Context, form: SomeSettings) -> Redirect:
    """Change which notifications the coach gets."""
    return await shared.save_settings(ctx, form, _PATH)


@pages.post("/devices", access=session_only(), form=DeviceForm, on=notifications_page, idempotent=True)
async def turn_device_on(ctx: Context, form: DeviceForm) -> Redirect:
    """Receive notifications on the browser that sends this form."""
    return await shared.turn_on(ctx, form, _PATH)


@pages.post("/devices/{subscriptionId}/remove", access=session_only(), on=notifications_page)
async def turn_device_off(ctx: Context, subscription_id: ObjectId) -> Redirect:
    """Receive no more notifications on a device."""
    return await shared.turn_off(ctx, subscription_id, _PATH)


@pages.post("/test", access=session_only(), on=notifications_page)
async def test_device(ctx: Context) -> Redirect:
    """Send a notification to this device."""
    return await shared.send_test(ctx, _PATH)


@pages.get("/phones", access=session_only(), template="settings/phones.html")
async def coach_phones_page(_: Context) -> dict[str, Any]:
    """What each phone needs to show notifications."""
    return {}
