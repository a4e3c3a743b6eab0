"""Workout templates as they are sent, stored and read."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.models import ItemInput, WorkItem


class TemplateInput(TypedDict):
    """A template to create."""

    name: str
    type: str | None
    tags: list[str]
    items: list[ItemInput]


class TemplateChange(TypedDict, total=False):
    """The fields of a template to change, and the version the change is based on."""

    name: str
    type: str | None
    tags: list[str]
    items: list[ItemInput]
    version: int | None


class TemplateContent(TypedDict):
    """The content of a stored template."""

    name: str
    type: str | None
    tags: list[str]
    items: list[WorkItem]


class TemplateFields(TypedDict, total=False):
    """The fields of a stored template to set."""

    name: str
    type: str | None
    tags: list[str]
    items: list[WorkItem]


class TemplateName(TypedDict):
    """The name of a template."""

    _id: ObjectId
    name: str


class Template(Stored):
    """A template; its `items` have the fields of stored items in the database, and of read items in results."""

    name: str
    type: str | None
    tags: list[str]
    items: list[WorkItem]
