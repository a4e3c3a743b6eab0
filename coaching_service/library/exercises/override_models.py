"""What a company changes in shared exercises."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Default, Description, Partial
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Link, StringList, Text, Version
from coaching_service.library.exercises.models import StoredMedia


class _Override(TypedDict):
    videoLink: Annotated[str | None, Link()]
    defaultInstructions: Annotated[str | None, Text(max_length=TEXT_LENGTH)]
    aliases: Annotated[
        list[str],
        StringList(max_length=200),
        Default(list),
        Description("Names that the company uses, in addition to the shared aliases."),
    ]


class ExerciseOverride(_Override):
    """What the company changes in a shared exercise; a field that is absent or null is as in the shared library."""

    version: NotRequired[Annotated[int, Version()]]


class OverrideContent(_Override):
    """What a company changes in a shared exercise, and the media it adds."""

    media: list[StoredMedia]


class Override(OverrideContent, Stored):
    """The stored changes of a company in a shared exercise."""

    exerciseId: ObjectId


OverrideFields: TypeAlias = Partial[OverrideContent]
