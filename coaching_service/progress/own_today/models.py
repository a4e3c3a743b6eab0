"""A client's day as it is returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from marshmallow import fields

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date
from coaching_service.people.availability.models import Availability
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.schemas import WorkoutBlock
from coaching_service.training.workouts.reports.calendar_days import CalendarDay


class NextWorkout(TypedDict):
    """The first workout after today."""

    _id: ObjectId
    name: str
    date: Annotated[str, Date()]


class PendingForm(TypedDict):
    """A scheduled form without an answer."""

    formId: Annotated[ObjectId | None, Description("null if the form was made for the workout item.")]
    formName: Annotated[str, Description("The name of the form.")]
    date: Annotated[str, Date(), Description("The date it is scheduled for.")]
    wblockId: Annotated[ObjectId, Description("The workout block it is in.")]
    witemId: Annotated[ObjectId, Description("The item with the form.")]


class OwnPendingForm(PendingForm):
    """A scheduled form that the client has not answered."""

    isOverdue: Annotated[bool, Description("The date is before today, and not in an absence.")]


class Today(TypedDict):
    """A client's day."""

    date: Annotated[str, Date(), Description("Today, in the client's time zone.")]
    blocks: Annotated[
        list[Block], fields.List(fields.Nested(WorkoutBlock)), Description("The workout blocks of today.")
    ]
    nextWorkout: Annotated[NextWorkout | None, Description("The first workout after today; null without one.")]
    pendingForms: Annotated[
        list[OwnPendingForm],
        Description("The forms of today and the 30 days before that are not answered, oldest first."),
    ]
    unreadMessages: Annotated[int, Description("How many messages of coaches the client has not read.")]
    streakWeeks: Annotated[
        int,
        Description(
            "The number of successive weeks, from Monday, up to this or the last one, that each have a completed "
            "workout. Weeks with a day of absence and without a completed workout are passed over."
        ),
    ]
    availability: Annotated[
        Availability | None,
        Description("The period in which the client cannot train as planned, or the next one; null without one."),
    ]


class Overview(TypedDict):
    """A client's day, the days of its week from Monday on, and the workout blocks of tomorrow."""

    today: Today
    week: list[CalendarDay]
    tomorrow: list[Block]
