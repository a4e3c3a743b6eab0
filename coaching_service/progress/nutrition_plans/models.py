"""Nutrition plans as they are stored and returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Returned, Stored
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId


class PlanFile(TypedDict):
    """The file of a version of a client's nutrition plan."""

    customerId: ObjectId
    number: Annotated[int, Description("From 1; a number is never used twice.")]
    fileName: str
    contentType: str
    size: Annotated[int, Description("Bytes.")]


class NewPlan(PlanFile):
    """A version of a client's nutrition plan to store; `thumbnailId` is set for pictures."""

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


class PlanVersion(PlanFile, Returned):
    """A version of a client's nutrition plan."""

    url: Annotated[str, fields.Url(), Description("Expires after two hours.")]
