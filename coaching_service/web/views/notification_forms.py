"""The settings of notifications and the devices that show them, as the pages of coaches and clients have them."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.people.notification_settings.models import SETTINGS_INPUT, NotificationSettings, SomeSettings
from coaching_service.people.own_user import service as own_user
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import sending
from coaching_service.people.push import service as push
from coaching_service.people.push.models import MAX_ENDPOINT, MAX_USER_AGENT, NewPushSubscription
from coaching_service.people.push.schemas import BrowserKey
from coaching_service.web.device_names import describe_device
from coaching_service.web.pages import Redirect

_COMMON = ("messages", "showDetails", "quietFrom", "quietTo")
CLIENT_FORM = SETTINGS_INPUT(only=(*_COMMON, "reminders", "workouts", "checkIns", "workoutTime"))
COACH_FORM = SETTINGS_INPUT(only=(*_COMMON, "digest", "proposals", "digestHour"))


class KindOfNotification(NamedTuple):
    """A kind of notification in words, and when it comes."""

    name: str
    label: str
    hint: str


CLIENT_KINDS = (
    KindOfNotification("messages", "Messages", "When your coach has written."),
    KindOfNotification("workouts", "Workout of the day", "At the time below, if you have one."),
    KindOfNotification("reminders", "Reminders in your plan", "At their time."),
    KindOfNotification("checkIns", "Check-ins", "On the day they are due."),
)
COACH_KINDS = (
    KindOfNotification(
        "messages", "Messages", "When a client has written. By email unless the company has turned it off."
    ),
    KindOfNotification("digest", "Who needs attention", "On weekdays, at the hour below."),
    KindOfNotification("proposals", "Proposals", "When an assistant proposes something to you."),
)


class DeviceForm(TypedDict):
    """The subscription of a browser, as a script sends it."""

    endpoint: Annotated[str, Text(max_length=MAX_ENDPOINT)]
    p256dh: Annotated[str, BrowserKey("p256dh")]
    auth: Annotated[str, BrowserKey("auth")]
    userAgent: Annotated[str, Text(max_length=MAX_USER_AGENT, allow_blank=True), Default("")]


async def read_settings(ctx: Context, kinds: tuple[KindOfNotification, ...]) -> dict[str, Any]:
    """Return the variables of a page with the settings of the caller."""
    devices = await push.list_own_devices(ctx)
    return {
        "kinds": kinds,
        "settings": (await own_user.get(ctx))["notifications"],
        "devices": [{**each, "name": describe_device(each["userAgent"])} for each in devices],
        "has_device": any(each["isCurrent"] for each in devices),
        "push_key": (await push_keys.get_public_key(ctx.services))["key"],
    }


async def save_settings(ctx: Context, form: SomeSettings, path: str) -> Redirect:
    """Change the settings of the caller."""
    await own_user.update(ctx, {"notifications": cast("NotificationSettings", form)})
    return Redirect(path, "Changes saved.")


async def turn_on(ctx: Context, form: DeviceForm, path: str) -> Redirect:
    """Store the subscription of the browser that sends it; the script receives the current public key."""
    subscription: NewPushSubscription = {
        "endpoint": form["endpoint"],
        "keys": {"p256dh": form["p256dh"], "auth": form["auth"]},
        "userAgent": form["userAgent"],
    }
    await push.subscribe(ctx, subscription)
    data = await push_keys.get_public_key(ctx.services)
    return Redirect(path, "Notifications are on for this device.", data={**data})


async def turn_off(ctx: Context, subscription_id: ObjectId, path: str) -> Redirect:
    """End the notifications on a device of the caller."""
    await push.unsubscribe(ctx, subscription_id)
    return Redirect(path, "Notifications are off for that device.")


async def send_test(ctx: Context, path: str) -> Redirect:
    """Send a notification to the device of the caller's session."""
    sent = await sending.enqueue_test(ctx)
    return Redirect(path, "A test is on its way." if sent else "Notifications are off for this device: turn them on.")
