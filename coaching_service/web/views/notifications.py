"""The settings of notifications and the devices that show them, as the pages of coaches and clients have them."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from marshmallow import Schema

from coaching_service.core.auth.access import Access, customer, public, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people import own_user
from coaching_service.people.notification_settings import SETTINGS_INPUT, NotificationSettings, SomeSettings
from coaching_service.people.notifications import sending as unsubscribing
from coaching_service.people.notifications.models import MailsOffLink
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import sending
from coaching_service.people.push import service as push
from coaching_service.people.push.models import NewPushSubscription
from coaching_service.web.formatting import describe_device
from coaching_service.web.pages import Pages, Redirect

_COMMON = ("messages", "showDetails", "quietFrom", "quietTo")
_CLIENT_FORM = SETTINGS_INPUT(only=(*_COMMON, "reminders", "workouts", "checkIns", "workoutTime"))
_COACH_FORM = SETTINGS_INPUT(only=(*_COMMON, "digest", "proposals", "digestHour"))


class _Kind(NamedTuple):
    """A kind of notification in words, and when it comes."""

    name: str
    label: str
    hint: str


_CLIENT_KINDS = (
    _Kind("messages", "Messages", "When your coach has written."),
    _Kind("workouts", "Workout of the day", "At the time below, if you have one."),
    _Kind("reminders", "Reminders in your plan", "At their time."),
    _Kind("checkIns", "Check-ins", "On the day they are due."),
)
_COACH_KINDS = (
    _Kind("messages", "Messages", "When a client has written. By email unless the company has turned it off."),
    _Kind("digest", "Who needs attention", "On weekdays, at the hour below."),
    _Kind("proposals", "Proposals", "When an assistant proposes something to you."),
)


def _declare(pages: Pages, access: Access, templates: str, kinds: tuple[_Kind, ...], schema: Schema) -> None:
    """Declare the pages of the settings of the caller, whose templates are in the folder `templates`."""

    @pages.get("", access=access, template=f"{templates}/notifications.html")
    async def notifications_page(ctx: Context) -> dict[str, Any]:
        """Which notifications the caller gets, when, and on which devices."""
        devices = await push.list_own_devices(ctx)
        return {
            "kinds": kinds,
            "settings": (await own_user.get(ctx))["notifications"],
            "devices": [{**each, "name": describe_device(each["userAgent"])} for each in devices],
            "has_device": any(each["isCurrent"] for each in devices),
            "push_key": (await push_keys.get_public_key(ctx.services))["key"],
        }

    @pages.post("", access=access, form=schema, on=notifications_page, idempotent=True)
    async def change_notifications(ctx: Context, form: SomeSettings) -> Redirect:
        """Change which notifications the caller gets."""
        await own_user.update(ctx, {"notifications": cast("NotificationSettings", form)})
        return Redirect(pages.prefix, "Changes saved.")

    @pages.post("/devices", access=access, form=NewPushSubscription, on=notifications_page, idempotent=True)
    async def turn_device_on(ctx: Context, form: NewPushSubscription) -> Redirect:
        """Send notifications to the browser that sends this form; its script receives the current public key."""
        await push.subscribe(ctx, form)
        data = await push_keys.get_public_key(ctx.services)
        return Redirect(pages.prefix, "Notifications are on for this device.", data={**data})

    @pages.post("/devices/{subscriptionId}/remove", access=access, on=notifications_page, deletes=True)
    async def turn_device_off(ctx: Context, subscription_id: ObjectId) -> Redirect:
        """Send no more notifications to a device."""
        await push.unsubscribe(ctx, subscription_id)
        return Redirect(pages.prefix, "Notifications are off for that device.")

    @pages.post("/test", access=access, on=notifications_page)
    async def test_device(ctx: Context) -> Redirect:
        """Send a notification to the device of this session."""
        sent = await sending.enqueue_test(ctx)
        text = "A test is on its way." if sent else "Notifications are off for this device: turn them on."
        return Redirect(pages.prefix, text)

    @pages.get("/off", access=public(), template="sign_in/no_mails.html")
    async def mails_off_page(ctx: Context, query: MailsOffLink) -> dict[str, Any]:
        """The page to turn off one kind of mails without signing in."""
        kind = unsubscribing.find_kind(ctx.services, query["token"])
        return {"token": query["token"], "label": next((each.label for each in kinds if each.name == kind), None)}

    @pages.post("/off", access=public(), on=mails_off_page, one_click=True)
    async def turn_mails_off(ctx: Context, form: MailsOffLink) -> Redirect:
        """Turn off the kind of mails that the token was mailed in."""
        await unsubscribing.turn_off(ctx, form["token"])
        return Redirect(f"{pages.prefix}/off", "You will receive no more of these mails.")

    @pages.get("/phones", access=access, template=f"{templates}/phones.html")
    async def phones_page(_: Context) -> dict[str, Any]:
        """What each phone needs to show notifications."""
        return {}


pages = Pages("")
_declare(pages.below("/app/settings/notifications"), session_only(), "settings", _COACH_KINDS, _COACH_FORM)
_declare(pages.below("/train/settings/notifications"), customer(), "train/settings", _CLIENT_KINDS, _CLIENT_FORM)
