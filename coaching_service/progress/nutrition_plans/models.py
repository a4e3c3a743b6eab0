"""Nutrition plans as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class NewPlan(TypedDict):
    """A version of a client's nutrition plan to store; `size` is in bytes, `thumbnailId` is set for pictures."""

    customerId: ObjectId
    number: int
    fileName: str
    contentType: str
    size: int
    fileId: ObjectId
    thumbnailId: ObjectId | None


class StoredPlan(NewPlan, Stored):
    """A version of a client's nutrition plan as it is stored."""


class PlanCounter(Stored):
    """Counts the versions of one client's plan: its own `version` rises by one with each."""

    customerId: ObjectId


class PlanOwner(TypedDict):
    """A client of a company."""

    companyId: ObjectId
    customerId: ObjectId


class LowCounter(TypedDict):
    """A client whose counter is behind the highest number of their plan versions."""

    _id: PlanOwner
    number: int


class Plan(TypedDict):
    """A version of a client's nutrition plan as it is returned; `url` expires after two hours."""

    _id: ObjectId
    customerId: ObjectId
    number: int
    fileName: str
    contentType: str
    size: int
    url: str | None
    createdAt: datetime
    updatedAt: datetime
    version: int
