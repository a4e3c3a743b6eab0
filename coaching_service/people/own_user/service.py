"""Reading the authenticated user, and changing what it chooses for itself."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.notification_settings.models import NotificationSettings
from coaching_service.people.own_profile import service as own_profile
from coaching_service.people.own_user.models import CurrentUser, CurrentUserChange
from coaching_service.people.team import service as team


async def get(ctx: Context) -> CurrentUser:
    """Return the caller with the permissions of the credential. Raises NotFound if it has been deleted."""
    caller = ctx.caller
    return {
        "_id": caller.id,
        "name": caller.name,
        "email": caller.email,
        "emailConfirmed": await identities.is_email_confirmed(ctx, caller.id),
        "role": caller.role,
        "companyId": caller.company.id,
        "permissions": sorted(caller.permissions),
        "via": caller.via,
        "notifications": await _get_notifications(ctx),
    }


async def _get_notifications(ctx: Context) -> NotificationSettings:
    if ctx.caller.is_coach:
        return await team.get_notifications(ctx, ctx.caller.id)
    return customers.get_notifications(await customers.get_visible(ctx, ctx.caller.id, ("notifications",)))


@transactional
async def update(ctx: Context, change: CurrentUserChange) -> CurrentUser:
    """Change what the caller chooses, and return the caller. Raises NotFound if it has been deleted."""
    if settings := change.get("notifications"):
        if ctx.caller.is_coach:
            await team.set_notifications(ctx, settings)
        else:
            await own_profile.update(ctx, {"notifications": settings})
    return await get(ctx)
