"""Notifications of a client: kinds, times, devices, and what each phone needs."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.notification_settings.models import SomeSettings
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views import notification_forms as shared
from coaching_service.web.views.notification_forms import DeviceForm

_PATH = "/train/settings/notifications"
pages = Pages(_PATH)


@pages.get("", access=customer(), template="train/settings/notifications.html")
async def own_notifications_page(ctx: Context) -> dict[str, Any]:
    """Which notifications the client gets, when, and on which devices."""
    return await shared.read_settings(ctx, shared.CLIENT_KINDS)


@pages.post("", access=customer(), form=shared.CLIENT_FORM, on=own_notifications_page, idempotent=True)
async def change_own_notifications(ctx: Context, form: SomeSettings) -> Redirect:
    """Change which notifications the client gets."""
    return await shared.save_settings(ctx, form, _PATH)


@pages.post("/devices", access=customer(), form=DeviceForm, on=own_notifications_page, idempotent=True)
async def turn_own_device_on(ctx: Context, form: DeviceForm) -> Redirect:
    """Receive notifications on the browser that sends this form."""
    return await shared.turn_on(ctx, form, _PATH)


@pages.post("/devices/{subscriptionId}/remove", access=customer(), on=own_notifications_page)
async def turn_own_device_off(ctx: Context, subscription_id: ObjectId) -> Redirect:
    """Receive no more notifications on a device."""
    return await shared.turn_off(ctx, subscription_id, _PATH)


@pages.post("/test", access=customer(), on=own_notifications_page)
async def test_own_device(ctx: Context) -> Redirect:
    """Send a notification to this device."""
    return await shared.send_test(ctx, _PATH)


@pages.get("/phones", access=customer(), template="train/settings/phones.html")
async def phones_page(_: Context) -> dict[str, Any]:
    """What each phone needs to show notifications."""
    return {}
