"""The authenticated user over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import anyone
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.people.own_user import service
from coaching_service.people.own_user.models import CurrentUser, CurrentUserChange, UserSettings

routes = Routes("/me", tag="Account")


@routes.get("", access=anyone())
async def get_me(ctx: Context) -> CurrentUser:
    """Read the authenticated caller.

    The coach or client whom the credential belongs to, with the permissions that it has now.
    """
    return await service.get(ctx)


@routes.patch(
    "",
    access=anyone(),
    body=input_of(UserSettings, name="CurrentUserChange", description="What to change.")(),
    example={"notifications": {"digest": {"mail": False}, "quietFrom": "22:00", "quietTo": "07:00"}},
)
async def update_me(ctx: Context, body: CurrentUserChange) -> CurrentUser:
    """Change what the authenticated caller chooses.

    Settings that are left out stay as they are. A boolean for a kind of notification is taken for all its channels. A
    client changes the same settings with PATCH /customer/me.
    """
    return await service.update(ctx, body)
