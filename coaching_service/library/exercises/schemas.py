"""Request and response schemas of exercises."""

from __future__ import annotations

from typing import get_args

from marshmallow import Schema, fields

from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.list_selection import UpdatedSinceOrSorted
from coaching_service.core.pagination import PageQuery, page_of
from coaching_service.core.validation import (
    TEXT_LENGTH,
    Choice,
    DateTime,
    Identifier,
    Input,
    Link,
    ListOf,
    Output,
    StringList,
    Text,
    Version,
)
from coaching_service.library.exercises import models
from coaching_service.library.exercises.resolution import MAX_NAME_LENGTH

TYPES = ("strength", "cardio", "stretching", "plyometrics", "mobility")
LEVELS = ("beginner", "intermediate", "expert")
ROLES = ("primary", "secondary")
MEDIA_TYPES = ("image", "video", "gif", "link")
MOVEMENT_PATTERNS = get_args(models.MovementPattern)
FORCES = get_args(models.Force)
MECHANICS = get_args(models.Mechanic)
LATERALITIES = get_args(models.Laterality)
LOAD_TYPES = get_args(models.LoadType)
MINE, PUBLIC = "my", "public"
_LOAD_TYPE = (
    "What the loads of its sets mean. `load`: more is better. `assistance`: help, as of an assisted pull-up machine: "
    "less is better, and there is no estimated 1RM and no volume load."
)
_MOVEMENT = "{}; null where it does not apply, and for a company's own exercise."


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

    type = Choice(MINE, PUBLIC, *TYPES, metadata={"description": "`my`, `public`, or a type of exercise."})


class MuscleRole(Input):
    """A muscle that an exercise trains."""

    _id = Identifier(required=True)
    role = Choice(*ROLES, load_default="primary")


class NewExerciseMedia(Input):
    """An image, video, animation or page about an exercise."""

    _id = Identifier()
    type = Choice(*MEDIA_TYPES, required=True)
    url = Link(required=True)
    source = Text(allow_none=True, load_default=None, metadata={"description": "Where it comes from, such as YouTube."})
    key = Text(allow_none=True, load_default=None, metadata={"description": "Its identifier at the source."})
    thumbnailUrl = Link(
        allow_none=True,
        load_default=None,
        metadata={"description": "A link to a small picture of it; null without one."},
    )


class NewExercise(IdentityFields):
    """An exercise to create."""

    name = Text(required=True)
    aliases = StringList(max_length=200, load_default=list)
    type = Choice(*TYPES, load_default="strength")
    level = Choice(*LEVELS, allow_none=True, load_default=None)
    defaultInstructions = Text(max_length=TEXT_LENGTH, allow_blank=True, allow_none=True, load_default=None)
    videoLink = Link(allow_none=True, load_default=None)
    tags = StringList(load_default=list)
    muscleGroups = ListOf(fields.Nested(MuscleRole), maximum=23, allow_none=True, load_default=list)
    equipment = Text(allow_none=True, load_default=None)
    loadType = Choice(*LOAD_TYPES, load_default=models.LOAD, metadata={"description": f"{_LOAD_TYPE} Default: `load`."})
    media = ListOf(
        fields.Nested(NewExerciseMedia),
        maximum=40,
        allow_none=True,
        load_default=list,
        metadata={
            "description": "The links of the exercise. Uploaded files are not affected: those named by `_id` take the "
            "place in which they are sent, others stay at the end."
        },
    )


class ExerciseOverride(Input):
    """What the company changes in a shared exercise; a field that is absent or null is as in the shared library."""

    videoLink = Link(allow_none=True, load_default=None)
    defaultInstructions = Text(max_length=TEXT_LENGTH, allow_none=True, load_default=None)
    aliases = StringList(
        max_length=200,
        load_default=list,
        metadata={"description": "Names that the company uses, in addition to the shared aliases."},
    )
    version = Version()


class MuscleGroup(Output):
    """A muscle group."""

    _id = Identifier()
    name = fields.String()


class TrainedMuscle(MuscleGroup):
    """A muscle that an exercise trains, and whether it does most of the work."""

    role = Choice(*ROLES)


class ExerciseMedia(Output):
    """An image, video, animation or page about an exercise."""

    _id = Identifier()
    type = Choice(*MEDIA_TYPES)
    key = fields.String(
        allow_none=True, metadata={"description": "Its identifier at the source, or the storage key of an upload."}
    )
    source = fields.String(allow_none=True, metadata={"description": "Where it comes from; `upload` for a file."})
    url = fields.Url(
        metadata={"description": "A link to it; to an uploaded file it is signed and valid for two hours."}
    )
    thumbnailUrl = fields.Url(
        allow_none=True, metadata={"description": "A link to a small picture of it; null without one."}
    )


class TranslatedNames(Output):
    """The name and the aliases of a shared exercise in another language."""

    name = fields.String(metadata={"description": "The name in this language."})
    aliases = fields.List(fields.String(), metadata={"description": "Other names in this language."})


class ExerciseTranslations(Output):
    """The translations of a shared exercise."""

    es = fields.Nested(TranslatedNames, metadata={"description": "Spanish."})


class Exercise(IdentityResult):
    """An exercise as the company sees it: its own, or a shared one (`companyId` null) with the company's override."""

    _id = Identifier()
    name = fields.String()
    aliases = fields.List(fields.String())
    type = Choice(*TYPES)
    level = Choice(*LEVELS, allow_none=True)
    defaultInstructions = fields.String(allow_none=True)
    videoLink = fields.Url(allow_none=True)
    tags = fields.List(fields.String())
    muscleGroups = fields.List(fields.Nested(TrainedMuscle))
    equipment = fields.String(allow_none=True)
    loadType = Choice(*LOAD_TYPES, metadata={"description": _LOAD_TYPE})
    movementPattern = Choice(
        *MOVEMENT_PATTERNS, allow_none=True, metadata={"description": _MOVEMENT.format("The kind of movement")}
    )
    force = Choice(
        *FORCES,
        allow_none=True,
        metadata={"description": _MOVEMENT.format("Whether the load is pushed, pulled or held still")},
    )
    mechanic = Choice(
        *MECHANICS,
        allow_none=True,
        metadata={"description": _MOVEMENT.format("Whether several joints move (`compound`) or one (`isolation`)")},
    )
    laterality = Choice(
        *LATERALITIES,
        allow_none=True,
        metadata={
            "description": _MOVEMENT.format("Whether both sides work together, one side at a time, or both in turn")
        },
    )
    translations = fields.Nested(
        ExerciseTranslations,
        allow_none=True,
        metadata={"description": "Names in other languages; null for a company's own exercise."},
    )
    media = fields.List(fields.Nested(ExerciseMedia))
    image = fields.Url(allow_none=True)
    thumbnail = fields.Url(allow_none=True)
    libraryId = Identifier()
    companyId = Identifier(allow_none=True)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class OwnExercise(Output):
    """An exercise as a client sees it."""

    _id = Identifier()
    name = fields.String()
    type = Choice(*TYPES)
    level = Choice(*LEVELS, allow_none=True)
    defaultInstructions = fields.String(allow_none=True)
    videoLink = fields.Url(allow_none=True)
    muscleGroups = fields.List(fields.Nested(TrainedMuscle))
    equipment = fields.String(allow_none=True)
    loadType = Choice(*LOAD_TYPES, metadata={"description": _LOAD_TYPE})
    media = fields.List(fields.Nested(ExerciseMedia))
    image = fields.Url(allow_none=True)
    thumbnail = fields.Url(allow_none=True)


def _exercise_page() -> type[Schema]:
    base = page_of(Exercise)
    tolerant = fields.Boolean(
        metadata={"description": "True if matches with one typing error are included.", "optional": True}
    )
    return type(base.__name__, (base,), {"tolerant": tolerant})


EXERCISE_PAGE = _exercise_page()


class ExerciseNames(Input):
    """Names of exercises, as people write them."""

    names = ListOf(
        Text(max_length=MAX_NAME_LENGTH),
        minimum=1,
        maximum=50,
        required=True,
        metadata={"description": "1 to 50 names or abbreviations, each of at most 80 characters."},
    )


class ExerciseMatch(Output):
    """An exercise that a name may mean."""

    _id = Identifier()
    name = fields.String()
    score = fields.Float(
        metadata={"description": "How much the name or an alias of the exercise resembles the name sent: 0 to 100."}
    )


class ResolvedExerciseName(Output):
    """The exercise that a name means."""

    name = fields.String(metadata={"description": "The name as it was sent."})
    match = fields.Nested(
        ExerciseMatch,
        allow_none=True,
        metadata={
            "description": "null if no exercise is meant for sure: with this name or alias, or with a score of at "
            "least 85 and the same parts of the body and numbers."
        },
    )
    alternatives = fields.List(
        fields.Nested(ExerciseMatch), metadata={"description": "Up to three other exercises, the best first."}
    )


class ResolvedExerciseNames(Output):
    """What names mean, in the order of the request."""

    results = fields.List(fields.Nested(ResolvedExerciseName), metadata={"description": "One result for each name."})


class ExerciseLibrary(Output):
    """A library of exercises: the shared one (`companyId` null) or a company's own."""

    _id = Identifier()
    name = fields.String()
    companyId = Identifier(allow_none=True)
