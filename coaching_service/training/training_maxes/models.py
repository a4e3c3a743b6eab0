"""Training maximums and estimated one-repetition maximums as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId

MaxSource = Literal["coach", "records"]


class StoredTrainingMax(Stored):
    """A load to which a client's percentages for an exercise refer, in the company's unit.

    Its `source` is `coach` for a training maximum (`value` is None once it is removed), or `records` for the estimated
    one-repetition maximum: the highest of the personal records.
    """

    customerId: ObjectId
    exerciseId: ObjectId
    source: MaxSource
    value: float | None


class TrainingMax(TypedDict):
    """A training maximum as it is returned."""

    exerciseId: ObjectId
    value: float | None
    updatedAt: datetime


class ReferenceLoads(TypedDict):
    """The loads to which percentages of an exercise can refer: the training maximum, else the estimate."""

    trainingMax: float | None
    estimatedOneRepMax: float | None


class TrainingMaxInput(TypedDict):
    """A training maximum as a coach sends it; None removes it."""

    value: float | None


# The client who has a training maximum.
TrainingMaxOwner: TypeAlias = Part[StoredTrainingMax, Literal["_id", "customerId"]]
