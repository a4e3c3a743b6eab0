"""What clients read and change of their own record, and every user of what it chooses for itself."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias, TypedDict

from marshmallow import fields
from marshmallow.validate import OneOf

from coaching_service.core.auth import CUSTOMERS, anyone, customer, with_password_only, within
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Forbidden, NotFound, TooManyRequests
from coaching_service.core.fields import UNSET, Default, Description, Partial, input_of, names_of, take
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import patch_of
from coaching_service.people import files as stored_files
from coaching_service.people import team
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.notification_settings import SETTINGS_INPUT, NotificationSettings
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions.models import NewPassword, PasswordChange, PasswordSet

# --- A client's own profile as it is sent and returned; `profilePhotoUrl` is a signed link ----------------------------


class OwnProfile(customer_models.ContactDetails, customer_models.OwnSettings):
    """A client's own record."""

    _id: ObjectId
    profilePhotoUrl: Annotated[str | None, fields.Url()]
    createdAt: datetime
    updatedAt: datetime
    version: int


class ErasureRequest(TypedDict):
    """A client's request for the erasure of their data."""

    erasureRequestedAt: Annotated[datetime, Description("When the client asked for it first.")]


_FIELDS = (
    *names_of(customer_models.ContactDetails, customer_models.OwnSettings),
    "profilePhoto",
    "createdAt",
    "updatedAt",
    "version",
)


@transactional
async def set_profile_photo(ctx: Context, file: StoredFile | None, version: int | None = None) -> OwnProfile:
    """Replace the profile photo of the caller, a client, and return the profile; without a file nothing changes.

    Raises Conflict if the profile has changed since `version`, NotFound if the client has been deleted.
    """
    await customers.set_profile_photo(ctx, ctx.caller.id, file, version)
    if file is not None:
        await customers.record_activity(ctx, ctx.caller.id)
    return await get_own_profile(ctx)


async def get_profile_photo(ctx: Context) -> Download:
    """Return the profile photo of the caller, a client, in its small version. It must not be cached.

    Raises NotFound without a photo.
    """
    photo = (await customers.get_visible(ctx, ctx.caller.id, ("profilePhoto",))).get("profilePhoto")
    if photo is None:
        raise NotFound("profile photo")
    return await stored_files.open_file(ctx, photo["thumbnailId"] or photo["fileId"])


async def find_erasure_request(ctx: Context) -> datetime | None:
    """Return when the caller, a client, asked for the erasure of their data, or None.

    Raises NotFound if the client has been deleted.
    """
    customer = await customers.get_visible(ctx, ctx.caller.id, ("erasureRequestedAt",))
    return customer.get("erasureRequestedAt")


# --- A client's own profile over REST ---------------------------------------------------------------------------------


routes = Routes("/customer/me", tag="The client's own")


@routes.get("", access=customer())
async def get_own_profile(ctx: Context) -> OwnProfile:
    """Read my profile."""
    customer = await customers.get_visible(ctx, ctx.caller.id, _FIELDS)
    return {
        "_id": customer["_id"],
        **take(customer_models.ContactDetails, customer),
        "language": customer.get("language"),
        "loadUnit": customer.get("loadUnit"),
        "notifications": customers.get_notifications(customer),
        "consent": customers.complete_consent(customer),
        "profilePhotoUrl": customers.profile_photo_url(ctx, customer),
        "createdAt": customer["createdAt"],
        "updatedAt": customer["updatedAt"],
        "version": customer["version"],
    }


@routes.patch(
    "",
    access=customer(),
    body=patch_of(input_of(customer_models.OwnRecord), name="OwnProfileChange"),
    example={"notifications": {"messages": False}, "version": 0},
)
@transactional
async def update_own_profile(ctx: Context, body: customer_models.OwnDetails) -> OwnProfile:
    """Change my profile.

    Only the fields sent are changed; null clears a field.
    """
    # Raises Conflict if it has changed since `change["version"]`, NotFound if the client has been deleted, Forbidden
    # for a coach who impersonates the client and changes `consent`.
    if body.get("consent") and ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot change what the client allows", code="IMPERSONATED")
    await customers.update_own(ctx, body)
    await customers.record_activity(ctx, ctx.caller.id)
    return await get_own_profile(ctx)


@routes.put(
    "/profile-photo",
    access=customer(),
    multipart=MultipartBody("profilePhotoFile", IMAGE_TYPES, customer_models.ProfilePhotoFields),
    body_optional=True,
    example={},
)
async def set_own_profile_photo(
    ctx: Context, body: customer_models.ProfilePhotoFields, file: StoredFile | None
) -> OwnProfile:
    """Set my profile photo.

    Without a file nothing changes. Metadata, such as the location, is removed from the picture.
    """
    return await set_profile_photo(ctx, file, body.get("version"))


async def change_password(ctx: Context, current: str, new: str) -> NewPassword:
    """Change the password of the caller, a client; every other session of the client ends.

    Raises Forbidden for a coach who impersonates the client, and if `current` is wrong, which counts as a failed
    sign-in; TooManyRequests.
    """
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot change the password", code="IMPERSONATED")
    return await credentials.change_password(ctx, current, new)


@routes.put(
    "/password",
    request_class="unlimited",
    access=customer(),
    errors=(Forbidden, TooManyRequests),
    example={"currentPassword": "correct horse battery staple", "password": "another long password"},
)
async def set_own_password(ctx: Context, body: PasswordChange) -> PasswordSet:
    """Change my password.

    Every other session of mine ends; `deviceToken` replaces the one of my last sign-in. A wrong `currentPassword` is
    403 `WRONG_PASSWORD`, and counts as a failed sign-in of this session. Not in an impersonation session.
    """
    new_password = await change_password(ctx, body["currentPassword"], body["password"])
    return {"message": "The password has been changed; other sessions have ended", **new_password}


@routes.post("/erasure-request", access=customer(), status=200)
@transactional
async def request_own_erasure(ctx: Context) -> ErasureRequest:
    """Ask for the erasure of my data.

    The coaches see the request among what needs their attention, and delete the client; asking again changes nothing.
    """
    # Raises Forbidden for a coach who impersonates the client, NotFound if the client has been deleted.
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot ask for erasure", code="IMPERSONATED")
    requested_at = await customers.request_erasure(ctx)
    await customers.record_activity(ctx, ctx.caller.id)
    return {"erasureRequestedAt": requested_at}


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


# --- The authenticated user over REST ---------------------------------------------------------------------------------


user_routes = Routes("/me", tag="Account")


@user_routes.get("", access=with_password_only(anyone()))
async def get_me(ctx: Context) -> CurrentUser:
    """Read the authenticated caller.

    The coach or client whom the credential belongs to, with the permissions that it has now.
    """
    caller = ctx.caller
    if caller.is_coach:
        notifications = await team.get_notifications(ctx, caller.id)
    else:
        notifications = customers.get_notifications(await customers.get_visible(ctx, caller.id, ("notifications",)))
    return {
        "_id": caller.id,
        "name": caller.name,
        "email": caller.email,
        "emailConfirmed": await identities.is_email_confirmed(ctx, caller.id),
        "role": caller.role,
        "companyId": caller.company.id,
        "permissions": sorted(caller.permissions),
        "via": caller.via,
        "notifications": notifications,
    }


@user_routes.patch(
    "",
    access=within(CUSTOMERS.name, with_password_only(anyone())),
    body=input_of(UserSettings, name="CurrentUserChange", description="What to change.")(),
    example={"notifications": {"digest": {"mail": False}, "quietFrom": "22:00", "quietTo": "07:00"}},
)
@transactional
async def update_me(ctx: Context, body: CurrentUserChange) -> CurrentUser:
    """Change what the authenticated caller chooses.

    Settings that are left out stay as they are. A boolean for a kind of notification is taken for all its channels. A
    client changes the same settings with PATCH /customer/me. An application changes those of the coach who allowed it.
    """
    # Raises NotFound if it has been deleted, Forbidden if a key that acts as the company changes notifications.
    if settings := body.get("notifications"):
        if ctx.caller.role == "KEY":
            raise Forbidden("A key that acts as the company has no notification settings")
        if ctx.caller.is_coach:
            await team.set_notifications(ctx, settings)
        else:
            await update_own_profile(ctx, {"notifications": settings})
    return await get_me(ctx)
