"""Body weights as they are stored."""

from __future__ import annotations

from typing import Literal, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class BodyWeight(TypedDict):
    """What a client weighed on a date by the values of a metric, in its unit."""

    metricId: ObjectId
    date: str
    value: float
    unit: Literal["kg", "lb"]


class StoredBodyWeight(BodyWeight, Stored):
    """A stored body weight."""

    customerId: ObjectId
