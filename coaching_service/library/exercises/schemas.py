"""The queries of exercises, and the schemas of their responses that are not only a TypedDict."""

from __future__ import annotations

from marshmallow import Schema, fields

from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.list_selection import UpdatedSinceOrSorted
from coaching_service.core.pagination import PageQuery, page_of
from coaching_service.core.validation import Choice, Identifier
from coaching_service.library.exercises import models

MINE, PUBLIC = "my", "public"
NEW_EXERCISE = input_of(models.NewExercise, IdentityFields)
EXERCISE = output_of(models.Exercise, IdentityResult)
OWN_EXERCISE = output_of(models.OwnExercise, name="OwnExercise", description="An exercise as a client sees it.")


class OwnExerciseQuery(PageQuery, ExternalIdFilter, UpdatedSinceOrSorted):
    """The filters of a company's own exercises."""

    keywords = fields.String(
        metadata={
            "description": "Every word must occur in name, alias, tag, muscle or equipment; names and aliases in "
            "English or Spanish, and aliases that the company has added. If fewer than 5 exercises match, those that "
            "match with one typing error follow."
        }
    )
    libraryId = Identifier()


class ExerciseQuery(OwnExerciseQuery):
    """The filters of all exercises a company can use."""

    type = Choice(MINE, PUBLIC, *models.TYPES, metadata={"description": "`my`, `public`, or a type of exercise."})


def _exercise_page() -> type[Schema]:
    base = page_of(EXERCISE)
    tolerant = fields.Boolean(
        metadata={"description": "True if matches with one typing error are included.", "optional": True}
    )
    return type(base.__name__, (base,), {"tolerant": tolerant})


EXERCISE_PAGE = _exercise_page()
