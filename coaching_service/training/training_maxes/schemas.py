"""Requests and responses of training maximums."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import DateTime, Identifier, Input, Number, Output

_MAX_LOAD = 100_000


class NewTrainingMax(Input):
    """A training maximum to set."""

    value = Number(
        minimum=0,
        maximum=_MAX_LOAD,
        required=True,
        allow_none=True,
        metadata={
            "description": "The load, in the company's unit, to which percentages refer. null removes it: percentages "
            "then refer to the estimated 1RM."
        },
    )


class TrainingMax(Output):
    """The load to which a client's planned percentages for an exercise refer."""

    exerciseId = Identifier()
    value = fields.Float(allow_none=True, metadata={"description": "In the company's unit; null once removed."})
    updatedAt = DateTime()
