"""The queries of exercises, and the schemas of their responses that are not only a TypedDict."""

from __future__ import annotations

from marshmallow import Schema, fields

from coaching_service.core.external_identity import IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of, query_of
from coaching_service.core.list_selection import RECORDS
from coaching_service.core.pagination import page_of
from coaching_service.library.exercises import models

NEW_EXERCISE = input_of(models.NewExercise, IdentityFields)
EXERCISE = output_of(models.Exercise, IdentityResult)
OWN_EXERCISE_QUERY = query_of(models.OwnExerciseQuery, RECORDS)
EXERCISE_QUERY = query_of(models.ExerciseQuery, OWN_EXERCISE_QUERY)
OWN_EXERCISE = output_of(models.OwnExercise, name="OwnExercise", description="An exercise as a client sees it.")


def _exercise_page() -> type[Schema]:
    base = page_of(EXERCISE)
    tolerant = fields.Boolean(
        metadata={"description": "True if matches with one typing error are included.", "optional": True}
    )
    return type(base.__name__, (base,), {"tolerant": tolerant})


EXERCISE_PAGE = _exercise_page()
