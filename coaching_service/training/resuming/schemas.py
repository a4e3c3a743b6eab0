"""Requests and responses of returns from absences."""

from __future__ import annotations

from typing import get_args

from marshmallow import fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.validation import Choice, Date, DryRun
from coaching_service.people.availability.models import Availability
from coaching_service.training.resuming.models import ResumeMode
from coaching_service.training.schedule.schemas import ClearedSchedule


class ScheduleResumption(DryRun):
    """The return of a client from an absence."""

    class Meta(DryRun.Meta):
        include = {"from": Date(required=True, metadata={"description": "The first day on which the client trains."})}

    mode = Choice(
        *get_args(ResumeMode),
        required=True,
        metadata={
            "description": "`shift`: what was planned in the absence, and everything later, moves by its length. "
            "`drop`: what was planned in the absence is removed."
        },
    )


class ResumedSchedule(ClearedSchedule):
    """What a return from an absence changed of a calendar."""

    availability = fields.Nested(
        output_of(Availability), metadata={"description": "The absence, which ends before the first day."}
    )
