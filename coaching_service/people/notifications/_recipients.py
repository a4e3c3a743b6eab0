"""Who receives a notification: the address, the settings and the time zone."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.notification_settings.models import NotificationSettings
from coaching_service.people.notifications.models import Recipient
from coaching_service.people.team import service as team

_FIELDS = (*customers.SCOPE_FIELDS, "name", "email", "timezone", "notifications", "customerRoleData.isArchived")
_CLIENT_SETTINGS, _COACH_SETTINGS = "/train/settings/notifications", "/app/settings/notifications"


@dataclass(frozen=True)
class Addressee:
    """A recipient with what sending needs; `settings_path` is the page with the settings."""

    name: str
    email: str | None
    timezone: str
    settings: NotificationSettings
    settings_path: str


async def find_addressee(ctx: Context, recipient: Recipient) -> Addressee | None:
    """Return who receives a notification; None for an archived client, and for who has been deleted."""
    try:
        if recipient["type"] == "coach":
            return await _find_coach(ctx, recipient["_id"])
        return await _find_client(ctx, recipient["_id"])
    except NotFound:
        return None


async def _find_coach(ctx: Context, coach_id: ObjectId) -> Addressee:
    coach, settings = await team.require_coach(ctx, coach_id), await team.get_notifications(ctx, coach_id)
    return Addressee(coach["name"], coach["email"], ctx.caller.company.timezone, settings, _COACH_SETTINGS)


async def _find_client(ctx: Context, customer_id: ObjectId) -> Addressee | None:
    customer = await customers.get_visible(ctx, customer_id, _FIELDS)
    if customer["customerRoleData"]["isArchived"]:
        return None
    return Addressee(
        customer["name"],
        # The address by which the client signs in.
        await identities.get_email(ctx, customer_id) or customer["email"],
        customer["timezone"] or ctx.caller.company.timezone,
        customers.get_notifications(customer),
        _CLIENT_SETTINGS,
    )
