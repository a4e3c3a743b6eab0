"""A client's own profile as it is sent and returned."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import Notifications


class OwnProfile(TypedDict):
    """What a client sees of their own record."""

    _id: ObjectId
    name: str
    surname: str | None
    email: str | None
    phone: str | None
    birthday: str | None
    timezone: str | None
    notifications: Notifications
    createdAt: datetime
    updatedAt: datetime
    version: int
