"""What the template operations read and answer."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Date, DateTime, Identifier, Input, ListOf, Output, StringList, Text
from coaching_service.training.workouts.item_schemas import NEW_ITEM
from coaching_service.training.workouts.items import MAX_ITEMS
from coaching_service.training.workouts.schemas import item_answer


class TemplateQuery(Input):
    """The filters of the template list."""

    type = fields.String(metadata={"description": "Exactly this type."})
    tag = fields.String(metadata={"description": "Exactly this tag."})
    q = fields.String(metadata={"description": "Every word must occur in name or tags."})


class NewWorkoutTemplate(Input):
    """A template to create."""

    name = Text(required=True)
    type = Text(allow_none=True, load_default=None, metadata={"description": "Your own word: strength, mobility ..."})
    tags = StringList(load_default=list)
    items = ListOf(NEW_ITEM, maximum=MAX_ITEMS, load_default=list)


class WorkoutTemplate(Output):
    """A workout to be put onto any calendar."""

    _id = Identifier()
    name = fields.String()
    type = fields.String(allow_none=True)
    tags = fields.List(fields.String())
    items = fields.List(item_answer())
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class TemplateApplication(Input):
    """Onto whose calendar a template goes, and when."""

    customerId = Identifier(required=True)
    date = Date(required=True)
