"""Request and response schemas of workout templates."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.validation import Date, DateTime, Identifier, Input, ListOf, Output, StringList, Text
from coaching_service.training.schedule.schemas import on_conflict
from coaching_service.training.workouts.blocks.schemas import item_response
from coaching_service.training.workouts.items.content import MAX_ITEMS
from coaching_service.training.workouts.items.schemas import NEW_ITEM


class TemplateQuery(UpdatedSince):
    """The filters of the template list."""

    type = fields.String(metadata={"description": "Exactly this type."})
    tag = fields.String(metadata={"description": "Exactly this tag."})
    q = fields.String(metadata={"description": "Every word must occur in name or tags."})


class NewWorkoutTemplate(Input):
    """A template to create."""

    name = Text(required=True)
    type = Text(
        allow_none=True, load_default=None, metadata={"description": "Free text, such as strength or mobility."}
    )
    tags = StringList(load_default=list)
    items = ListOf(NEW_ITEM, maximum=MAX_ITEMS, load_default=list)


class WorkoutTemplate(Output):
    """A workout that can be copied to any calendar."""

    _id = Identifier()
    name = fields.String()
    type = fields.String(allow_none=True)
    tags = fields.List(fields.String())
    items = fields.List(item_response())
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class TemplateApplication(Input):
    """The client and the date to which a template is copied."""

    customerId = Identifier(required=True)
    date = Date(required=True)
    onConflict = on_conflict()
