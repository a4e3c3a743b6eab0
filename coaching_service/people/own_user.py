"""Reading the authenticated user, and changing what it chooses for itself."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, TypedDict

from marshmallow import fields
from marshmallow.validate import OneOf

from coaching_service.core.auth import CUSTOMERS, anyone, with_password_only, within
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.errors import Forbidden
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import UNSET, Default, Description, Partial
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people import own_profile, team
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.notification_settings import SETTINGS_INPUT, NotificationSettings

# --- The authenticated user as it is sent and returned ----------------------------------------------------------------


class UserSettings(TypedDict):
    """What a coach or client chooses for themselves."""

    notifications: Annotated[
        NotificationSettings,
        fields.Nested(SETTINGS_INPUT),
        Default(UNSET),
        Description("Which notifications the user gets, how and when."),
    ]


CurrentUserChange: TypeAlias = Partial[UserSettings]


class CurrentUser(UserSettings):
    """The authenticated caller."""

    _id: ObjectId
    name: str
    email: Annotated[str | None, fields.String(metadata={"maxLength": 254, "minLength": 1, "format": "idn-email"})]
    emailConfirmed: Annotated[bool, Description("Whether the e-mail address of the sign-in is confirmed.")]
    role: Annotated[
        Literal["OWNER", "EMPLOYEE", "KEY", "CUSTOMER"],
        Description("`KEY`: an API key that acts as the company, with its `_id` and name."),
    ]
    companyId: ObjectId
    permissions: Annotated[list[str], Description("`area.action`, e.g. `customers.view`, as this credential has them.")]
    via: Annotated[str, fields.String(validate=OneOf(("session", "apiKey", "application")))]


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
    """Change what the caller chooses, and return the caller.

    Raises NotFound if it has been deleted, Forbidden if a key that acts as the company changes notifications.
    """
    if settings := change.get("notifications"):
        if ctx.caller.role == "KEY":
            raise Forbidden("A key that acts as the company has no notification settings")
        if ctx.caller.is_coach:
            await team.set_notifications(ctx, settings)
        else:
            await own_profile.update(ctx, {"notifications": settings})
    return await get(ctx)


# --- The authenticated user over REST ---------------------------------------------------------------------------------


routes = Routes("/me", tag="Account")


@routes.get("", access=with_password_only(anyone()))
async def get_me(ctx: Context) -> CurrentUser:
    """Read the authenticated caller.

    The coach or client whom the credential belongs to, with the permissions that it has now.
    """
    return await get(ctx)


@routes.patch(
    "",
    access=within(CUSTOMERS.name, with_password_only(anyone())),
    body=input_of(UserSettings, name="CurrentUserChange", description="What to change.")(),
    example={"notifications": {"digest": {"mail": False}, "quietFrom": "22:00", "quietTo": "07:00"}},
)
async def update_me(ctx: Context, body: CurrentUserChange) -> CurrentUser:
    """Change what the authenticated caller chooses.

    Settings that are left out stay as they are. A boolean for a kind of notification is taken for all its channels. A
    client changes the same settings with PATCH /customer/me. An application changes those of the coach who allowed it.
    """
    return await update(ctx, body)
