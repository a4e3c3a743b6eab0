"""Exercises as they are sent, stored and read."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page

ExerciseType = Literal["strength", "cardio", "stretching", "plyometrics", "mobility"]
Level = Literal["beginner", "intermediate", "expert"]
Role = Literal["primary", "secondary"]
MediaType = Literal["image", "video", "gif", "link"]


class MuscleGroup(TypedDict):
    """A muscle group."""

    _id: ObjectId
    name: str


class TrainedMuscle(MuscleGroup):
    """A muscle group that an exercise trains."""

    role: Role


class MuscleInput(TypedDict):
    """A muscle group as it is sent."""

    _id: ObjectId
    role: Role


class MediaInput(TypedDict):
    """An image, video, animation or page about an exercise; `key` is its identifier at the `source`."""

    type: MediaType
    key: str | None
    source: str | None
    url: str
    thumbnailUrl: str | None


class Media(MediaInput):
    """A stored image, video, animation or page."""

    _id: ObjectId


class ExerciseDetails(TypedDict, total=False):
    """The fields of an exercise that are stored as they are sent."""

    name: str
    aliases: list[str]
    type: ExerciseType
    level: Level | None
    defaultInstructions: str | None
    videoLink: str | None
    tags: list[str]
    equipment: str | None


class ExerciseChange(ExerciseDetails, total=False):
    """The fields of an exercise to change, and the version the change is based on."""

    muscleGroups: list[MuscleInput]
    media: list[MediaInput]
    version: int | None


class ExerciseFields(ExerciseDetails, total=False):
    """The fields of a stored exercise to set."""

    muscleGroups: list[TrainedMuscle]
    media: list[Media]
    image: str | None
    thumbnail: str | None


class ExerciseContent(TypedDict):
    """The content of a stored exercise."""

    name: str
    aliases: list[str]
    type: ExerciseType
    level: Level | None
    defaultInstructions: str | None
    videoLink: str | None
    tags: list[str]
    muscleGroups: list[TrainedMuscle]
    equipment: str | None
    media: list[Media]
    image: str | None
    thumbnail: str | None
    libraryId: ObjectId


class ExerciseInput(TypedDict):
    """An exercise to create."""

    name: str
    aliases: list[str]
    type: ExerciseType
    level: Level | None
    defaultInstructions: str | None
    videoLink: str | None
    tags: list[str]
    muscleGroups: list[MuscleInput]
    equipment: str | None
    media: list[MediaInput]


class Exercise(ExerciseContent):
    """A stored exercise; `companyId` is null if it is shared."""

    _id: ObjectId
    companyId: ObjectId | None
    createdAt: datetime
    updatedAt: datetime
    version: int


class ExerciseName(TypedDict):
    """The name and instructions of an exercise, deleted or not."""

    _id: ObjectId
    name: str
    defaultInstructions: str | None


class ExerciseMuscles(TypedDict):
    """The muscles that an exercise trains."""

    _id: ObjectId
    muscleGroups: list[TrainedMuscle]


class SharedExercise(ExerciseContent):
    """An exercise to publish in the shared library; `digest` changes with its content."""

    _id: ObjectId
    digest: str


class ExerciseUse(TypedDict):
    """How often the company has planned an exercise."""

    exerciseId: ObjectId
    count: int


class SearchEntry(TypedDict):
    """What is searched of an exercise.

    `search` has the normalized name, aliases, tags, muscles and equipment, a line each; `names` is the number of its
    first lines that are the name and the aliases.
    """

    _id: ObjectId
    search: str
    names: int


class ExercisePage(Page[Exercise]):
    """A page of exercises; `tolerant` is true if the search also includes matches with a typing error."""

    tolerant: NotRequired[bool]


class ExerciseMatch(TypedDict):
    """An exercise that a name may mean; `score` from 0 to 100 states how much its name or an alias resembles it."""

    _id: ObjectId
    name: str
    score: float


class ResolvedName(TypedDict):
    """A name as it was sent, the exercise that it means, or None if that is not sure, and up to three others."""

    name: str
    match: ExerciseMatch | None
    alternatives: list[ExerciseMatch]


class ExerciseLibrary(TypedDict):
    """The shared library (`companyId` null) or the company's own."""

    _id: ObjectId
    name: str
    companyId: ObjectId | None
