"""Training maximums and estimated one-repetition maximums as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Number

MAX_VALUE = 100_000

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
    """The load to which a client's planned percentages for an exercise refer."""

    exerciseId: ObjectId
    value: Annotated[float | None, Description("In the company's unit; null once removed.")]
    updatedAt: datetime


class ReferenceLoads(TypedDict):
    """The loads to which percentages of an exercise can refer: the training maximum, else the estimate."""

    trainingMax: float | None
    estimatedOneRepMax: float | None


def load_of(loads: ReferenceLoads) -> float | None:
    """Return the load to which percentages refer: the training maximum, else the estimate."""
    return loads["estimatedOneRepMax"] if loads["trainingMax"] is None else loads["trainingMax"]


class NewTrainingMax(TypedDict):
    """A training maximum to set."""

    value: Annotated[
        float | None,
        Number(
            minimum=0,
            maximum=MAX_VALUE,
            required=True,
            metadata={
                "description": "The load, in the company's unit, to which percentages refer. null removes it: "
                "percentages then refer to the estimated 1RM. Where the load is added to the body's weight: "
                "what is added."
            },
        ),
    ]
