"""Request and response schemas of exercises."""

from __future__ import annotations

from marshmallow import Schema, fields

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
)

TYPES = ("strength", "cardio", "stretching", "plyometrics", "mobility")
LEVELS = ("beginner", "intermediate", "expert")
ROLES = ("primary", "secondary")
MEDIA_TYPES = ("image", "video", "gif", "link")
MINE, PUBLIC = "my", "public"


class OwnExerciseQuery(PageQuery):
    """The filters of a company's own exercises."""

    keywords = fields.String(
        metadata={
            "description": "Every word must occur in name, alias, tag, muscle or equipment. If fewer than 5 exercises "
            "match, those that match with one typing error follow."
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

    type = Choice(*MEDIA_TYPES, required=True)
    url = Link(required=True)
    source = Text(allow_none=True, load_default=None, metadata={"description": "Where it comes from, such as YouTube."})
    key = Text(allow_none=True, load_default=None, metadata={"description": "Its identifier at the source."})
    thumbnailUrl = Link(
        allow_none=True,
        load_default=None,
        metadata={"description": "A link to a small picture of it; null without one."},
    )


class NewExercise(Input):
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
    media = ListOf(fields.Nested(NewExerciseMedia), maximum=20, allow_none=True, load_default=list)


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
    key = fields.String(allow_none=True)
    source = fields.String(allow_none=True)
    url = fields.Url()
    thumbnailUrl = fields.Url(
        allow_none=True, metadata={"description": "A link to a small picture of it; null without one."}
    )


class Exercise(Output):
    """An exercise, shared (`companyId` null) or a company's own."""

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
    media = fields.List(fields.Nested(ExerciseMedia))
    image = fields.Url(allow_none=True)
    thumbnail = fields.Url(allow_none=True)
    libraryId = Identifier()
    companyId = Identifier(allow_none=True)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


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
        Text(), minimum=1, maximum=50, required=True, metadata={"description": "1 to 50 names or abbreviations."}
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
        ExerciseMatch, allow_none=True, metadata={"description": "null if no exercise is meant for sure."}
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
