"""A client's own profile over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Forbidden, TooManyRequests
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import patch_of
from coaching_service.people.customers.models import ProfilePhotoFields
from coaching_service.people.customers.own_models import OwnDetails, OwnRecord
from coaching_service.people.own_profile import service
from coaching_service.people.own_profile.models import ErasureRequest, OwnProfile
from coaching_service.people.sessions.models import PasswordChange, PasswordSet

routes = Routes("/customer/me", tag="The client's own")


@routes.get("", access=customer())
async def get_own_profile(ctx: Context) -> OwnProfile:
    """Read my profile."""
    return await service.get(ctx)


@routes.patch(
    "",
    access=customer(),
    body=patch_of(input_of(OwnRecord), name="OwnProfileChange"),
    example={"notifications": {"messages": False}, "version": 0},
)
async def update_own_profile(ctx: Context, body: OwnDetails) -> OwnProfile:
    """Change my profile.

    Only the fields sent are changed; null clears a field.
    """
    return await service.update(ctx, body)


@routes.put(
    "/profile-photo",
    access=customer(),
    multipart=MultipartBody("profilePhotoFile", IMAGE_TYPES, ProfilePhotoFields),
    body_optional=True,
    example={},
)
async def set_own_profile_photo(ctx: Context, body: ProfilePhotoFields, file: StoredFile | None) -> OwnProfile:
    """Set my profile photo.

    Without a file nothing changes. Metadata, such as the location, is removed from the picture.
    """
    return await service.set_profile_photo(ctx, file, body.get("version"))


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
    new_password = await service.change_password(ctx, body["currentPassword"], body["password"])
    return {"message": "The password has been changed; other sessions have ended", **new_password}


@routes.post("/erasure-request", access=customer(), status=200)
async def request_own_erasure(ctx: Context) -> ErasureRequest:
    """Ask for the erasure of my data.

    The coaches see the request among what needs their attention, and delete the client; asking again changes nothing.
    """
    return await service.request_erasure(ctx)
