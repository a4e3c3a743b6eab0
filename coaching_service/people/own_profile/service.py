"""What clients read and change of their own record."""

from __future__ import annotations

from datetime import datetime

from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.fields import names_of, take
from coaching_service.core.http.downloads import Download
from coaching_service.people.customers import activity_dates, profile_photos
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import ContactDetails, Customer
from coaching_service.people.customers.own_models import OwnDetails, OwnSettings
from coaching_service.people.files import service as stored_files
from coaching_service.people.own_profile.models import ErasureRequest, OwnProfile
from coaching_service.people.sessions import passwords
from coaching_service.people.sessions.models import NewPassword

_FIELDS = (*names_of(ContactDetails, OwnSettings), "profilePhoto", "createdAt", "updatedAt", "version")


async def get(ctx: Context) -> OwnProfile:
    """Return the profile of the caller, a client. Raises NotFound if the client has been deleted."""
    return _to_profile(ctx, await customers.get_visible(ctx, ctx.caller.id, _FIELDS))


@transactional
async def update(ctx: Context, change: OwnDetails) -> OwnProfile:
    """Change the profile of the caller, a client, and return it.

    Raises Conflict if it has changed since `change["version"]`, NotFound if the client has been deleted.
    """
    await customers.update_own(ctx, change)
    await activity_dates.record_activity(ctx, ctx.caller.id)
    return await get(ctx)


@transactional
async def set_profile_photo(ctx: Context, file: StoredFile | None, version: int | None = None) -> OwnProfile:
    """Replace the profile photo of the caller, a client, and return the profile; without a file nothing changes.

    Raises Conflict if the profile has changed since `version`, NotFound if the client has been deleted.
    """
    await profile_photos.set_profile_photo(ctx, ctx.caller.id, file, version)
    if file is not None:
        await activity_dates.record_activity(ctx, ctx.caller.id)
    return await get(ctx)


async def get_profile_photo(ctx: Context) -> Download:
    """Return the profile photo of the caller, a client, in its small version. It must not be cached.

    Raises NotFound without a photo.
    """
    photo = (await customers.get_visible(ctx, ctx.caller.id, ("profilePhoto",))).get("profilePhoto")
    if photo is None:
        raise NotFound("profile photo")
    return await stored_files.open_file(ctx, photo["thumbnailId"] or photo["fileId"])


async def change_password(ctx: Context, current: str, new: str) -> NewPassword:
    """Change the password of the caller, a client; every other session of the client ends.

    Raises Forbidden for a coach who impersonates the client, and if `current` is wrong, which counts as a failed
    sign-in; TooManyRequests.
    """
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot change the password", code="IMPERSONATED")
    return await passwords.change_password(ctx, current, new)


@transactional
async def request_erasure(ctx: Context) -> ErasureRequest:
    """Ask for the erasure of the data of the caller, a client: the coaches see it among the reasons for attention.

    Raises Forbidden for a coach who impersonates the client, NotFound if the client has been deleted.
    """
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot ask for erasure", code="IMPERSONATED")
    requested_at = await customers.request_erasure(ctx)
    await activity_dates.record_activity(ctx, ctx.caller.id)
    return {"erasureRequestedAt": requested_at}


async def find_erasure_request(ctx: Context) -> datetime | None:
    """Return when the caller, a client, asked for the erasure of their data, or None.

    Raises NotFound if the client has been deleted.
    """
    customer = await customers.get_visible(ctx, ctx.caller.id, ("erasureRequestedAt",))
    return customer.get("erasureRequestedAt")


def _to_profile(ctx: Context, customer: Customer) -> OwnProfile:
    return {
        "_id": customer["_id"],
        **take(ContactDetails, customer),
        "language": customer.get("language"),
        "loadUnit": customer.get("loadUnit"),
        "notifications": customers.get_notifications(customer),
        "profilePhotoUrl": customers.profile_photo_url(ctx, customer),
        "createdAt": customer["createdAt"],
        "updatedAt": customer["updatedAt"],
        "version": customer["version"],
    }
