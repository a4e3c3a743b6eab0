"""Returns from absences as they are sent, and their results."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from coaching_service.core.fields import Description
from coaching_service.core.validation import AbsenceDate, DryRunField
from coaching_service.people.availability.models import Availability
from coaching_service.training.schedule.models import ClearedSchedule

# What becomes of what was planned in an absence: it is moved, with everything later, or removed.
ResumeMode = Literal["shift", "drop"]


# `from` is a keyword of Python, so this type has the functional form.
_Return = TypedDict(
    "_Return",
    {
        "mode": Annotated[
            ResumeMode,
            Description(
                "`shift`: what was planned in the absence, and everything later, moves by its length. `drop`: what was "
                "planned in the absence is removed."
            ),
        ],
        "from": Annotated[str, AbsenceDate(), Description("The first day on which the client trains.")],
    },
)


class ScheduleResumption(DryRunField, _Return):
    """The return of a client from an absence."""


class ResumedSchedule(ClearedSchedule):
    """What a return from an absence changed of a calendar."""

    availability: Annotated[Availability, Description("The absence, which ends before the first day.")]
