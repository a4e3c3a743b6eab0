"""Workout templates as they are sent, stored and read."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Change, Default, Description, Part, Partial
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.validation import CalendarDate, ListOf, StringList, Text
from coaching_service.training.schedule.models import OnConflict, on_conflict
from coaching_service.training.workouts.blocks.models import WorkoutSettings
from coaching_service.training.workouts.items.models import ITEM_RESPONSE, NEW_ITEM, ItemInput, WorkItem
from coaching_service.training.workouts.items.service import MAX_ITEMS


class TemplateDetails(WorkoutSettings):
    """The fields of a template without its items."""

    name: Annotated[str, Text()]
    type: Annotated[str | None, Text(), Description(request="Free text, such as strength or mobility.")]
    tags: Annotated[list[str], StringList(), Default(list)]


class NewWorkoutTemplate(TemplateDetails):
    """A template to create."""

    items: Annotated[list[ItemInput], ListOf(NEW_ITEM, maximum=MAX_ITEMS), Default(list)]


class TemplateContent(TemplateDetails):
    """The content of a template; items are stored ones in the database, and as they are read in results."""

    items: Annotated[list[WorkItem], fields.List(ITEM_RESPONSE)]


class WorkoutTemplate(TemplateContent, Stored):
    """A workout that can be copied to any calendar."""


class TemplateApplication(TypedDict):
    """The client and the date to which a template is copied."""

    customerId: ObjectId
    date: Annotated[str, CalendarDate()]
    onConflict: Annotated[OnConflict, on_conflict()]


class TemplateQuery(UpdatedSince):
    """The filters of the template list."""

    type: NotRequired[Annotated[str, Description("Exactly this type.")]]
    tag: NotRequired[Annotated[str, Description("Exactly this tag.")]]
    q: NotRequired[Annotated[str, Description("Every word must occur in name or tags.")]]


TemplateChange: TypeAlias = Change[NewWorkoutTemplate]
TemplateName: TypeAlias = Part[WorkoutTemplate, Literal["_id", "name"]]
TemplateFields: TypeAlias = Partial[TemplateContent]
