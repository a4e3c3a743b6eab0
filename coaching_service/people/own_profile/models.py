"""A client's own profile as it is sent and returned; `profilePhotoUrl` is a signed link."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypedDict

from marshmallow import fields

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import ContactDetails
from coaching_service.people.customers.own_models import OwnSettings


class OwnProfile(ContactDetails, OwnSettings):
    """A client's own record."""

    _id: ObjectId
    profilePhotoUrl: Annotated[str | None, fields.Url()]
    createdAt: datetime
    updatedAt: datetime
    version: int


class ErasureRequest(TypedDict):
    """A client's request for the erasure of their data."""

    erasureRequestedAt: Annotated[datetime, Description("When the client asked for it first.")]
