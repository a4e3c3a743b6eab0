"""A client's own profile over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.validation import patch_of
from coaching_service.people.customers.models import OwnDetails
from coaching_service.people.own_profile import models, schemas, service

routes = Routes("/customer/me", tag="The client's own")


@routes.get("", access=customer(), returns=schemas.OwnProfile)
async def get_own_profile(ctx: Context) -> models.OwnProfile:
    """Read my profile."""
    return await service.read(ctx)


@routes.patch(
    "",
    access=customer(),
    body=patch_of(schemas.OwnDetails, name="OwnProfileChange"),
    returns=schemas.OwnProfile,
    example={"notifications": {"messages": False}, "version": 0},
)
async def update_own_profile(ctx: Context, body: OwnDetails) -> models.OwnProfile:
    """Change my profile.

    Only the fields sent are changed; null clears a field.
    """
    return await service.update(ctx, body)


@routes.post("/erasure-request", access=customer(), status=200, returns=schemas.ErasureRequest)
async def request_own_erasure(ctx: Context) -> models.ErasureRequest:
    """Ask for the erasure of my data.

    The coaches see the request among what needs their attention, and delete the client; asking again changes nothing.
    """
    return await service.request_erasure(ctx)
