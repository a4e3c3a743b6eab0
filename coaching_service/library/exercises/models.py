"""Exercises as they are sent, stored and read."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.external_identity import Identity, IdentityInput, StoredIdentity
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page

ExerciseType = Literal["strength", "cardio", "stretching", "plyometrics", "mobility"]
Level = Literal["beginner", "intermediate", "expert"]
Role = Literal["primary", "secondary"]
MediaType = Literal["image", "video", "gif", "link"]
MovementPattern = Literal[
    "squat",
    "lunge",
    "hinge",
    "knee_extension",
    "knee_flexion",
    "hip_extension",
    "hip_flexion",
    "hip_abduction",
    "hip_adduction",
    "calf_raise",
    "ankle_flexion",
    "horizontal_push",
    "vertical_push",
    "horizontal_pull",
    "vertical_pull",
    "chest_fly",
    "shoulder_raise",
    "shoulder_rotation",
    "shrug",
    "elbow_flexion",
    "elbow_extension",
    "grip",
    "neck",
    "core_flexion",
    "core_extension",
    "core_stability",
    "lateral_flexion",
    "rotation",
    "carry",
    "olympic_lift",
    "full_body",
    "jump",
    "throw",
    "locomotion",
]
Force = Literal["push", "pull", "static"]
Mechanic = Literal["compound", "isolation"]
Laterality = Literal["bilateral", "unilateral", "alternating"]
LoadType = Literal["load", "assistance"]
LOAD: LoadType = "load"
ASSISTANCE: LoadType = "assistance"


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
    """An image, video, animation or page about an exercise; `key` is its identifier at the `source`.

    `_id` names an entry that the exercise has already.
    """

    _id: NotRequired[ObjectId]
    type: MediaType
    key: str | None
    source: str | None
    url: str
    thumbnailUrl: str | None


class StoredMedia(TypedDict):
    """A stored image, video, animation or page: either a link (`url`), or an uploaded file (`fileId`).

    The links to a file are made when it is read.
    """

    _id: ObjectId
    type: MediaType
    key: str | None
    source: str | None
    url: str | None
    thumbnailUrl: str | None
    fileId: NotRequired[ObjectId]
    thumbnailId: NotRequired[ObjectId | None]


class Media(TypedDict):
    """An image, video, animation or page as it is read."""

    _id: ObjectId
    type: MediaType
    key: str | None
    source: str | None
    url: str | None
    thumbnailUrl: str | None


class TranslatedNames(TypedDict):
    """The name and the aliases of a shared exercise in another language."""

    name: str
    aliases: list[str]


class Translations(TypedDict):
    """The translations of a shared exercise, by language."""

    es: TranslatedNames


class Movement(TypedDict):
    """How a shared exercise moves; null where it does not apply, and for a company's own exercises."""

    movementPattern: MovementPattern | None
    force: Force | None
    mechanic: Mechanic | None
    laterality: Laterality | None


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
    loadType: LoadType


class ExerciseChange(ExerciseDetails, IdentityInput, total=False):
    """The fields of an exercise to change, and the version the change is based on."""

    muscleGroups: list[MuscleInput]
    media: list[MediaInput]
    version: int | None


class ExerciseFields(ExerciseDetails, StoredIdentity, total=False):
    """The fields of a stored exercise to set."""

    muscleGroups: list[TrainedMuscle]
    media: list[StoredMedia]


class RequiredDetails(TypedDict):
    """The fields of `ExerciseDetails` as every complete exercise has them."""

    name: str
    aliases: list[str]
    type: ExerciseType
    level: Level | None
    defaultInstructions: str | None
    videoLink: str | None
    tags: list[str]
    equipment: str | None


class ExerciseContent(RequiredDetails):
    """The content of a stored exercise; without `loadType` its loads are loads."""

    loadType: NotRequired[LoadType]
    muscleGroups: list[TrainedMuscle]
    media: list[StoredMedia]
    libraryId: ObjectId


class ExerciseInput(RequiredDetails, IdentityInput):
    """An exercise to create; its loads are loads unless `loadType` says otherwise."""

    loadType: NotRequired[LoadType]
    muscleGroups: list[MuscleInput]
    media: list[MediaInput]


class StoredExercise(ExerciseContent, StoredIdentity):
    """A stored exercise; `companyId` is null if it is shared, and only shared ones have the last fields."""

    _id: ObjectId
    companyId: ObjectId | None
    createdAt: datetime
    updatedAt: datetime
    version: int
    movementPattern: NotRequired[MovementPattern | None]
    force: NotRequired[Force | None]
    mechanic: NotRequired[Mechanic | None]
    laterality: NotRequired[Laterality | None]
    translations: NotRequired[Translations]


class Exercise(RequiredDetails, Movement, Identity):
    """An exercise as the company sees it: a shared one with the company's override.

    `version` and `updatedAt` change with the exercise and with the override.
    """

    _id: ObjectId
    loadType: LoadType
    muscleGroups: list[TrainedMuscle]
    media: list[Media]
    image: str | None
    thumbnail: str | None
    translations: Translations | None
    libraryId: ObjectId
    companyId: ObjectId | None
    createdAt: datetime
    updatedAt: datetime
    version: int


class OwnExercise(TypedDict):
    """An exercise as a client sees it."""

    _id: ObjectId
    name: str
    type: str
    level: str | None
    defaultInstructions: str | None
    videoLink: str | None
    muscleGroups: list[TrainedMuscle]
    equipment: str | None
    loadType: LoadType
    media: list[Media]
    image: str | None
    thumbnail: str | None


class OverrideInput(TypedDict):
    """What a company changes in a shared exercise; null leaves the shared value, `aliases` are added.

    `version` of the exercise that the change is based on.
    """

    videoLink: str | None
    defaultInstructions: str | None
    aliases: list[str]
    version: NotRequired[int | None]


class OverrideFields(TypedDict, total=False):
    """The fields of an override to set."""

    videoLink: str | None
    defaultInstructions: str | None
    aliases: list[str]
    media: list[StoredMedia]


class Override(Stored):
    """What a company changes in a shared exercise, and the media it adds."""

    exerciseId: ObjectId
    videoLink: str | None
    defaultInstructions: str | None
    aliases: list[str]
    media: list[StoredMedia]


class ExerciseReference(TypedDict):
    """An exercise."""

    _id: ObjectId
    name: str


class ExerciseSummary(ExerciseReference):
    """An exercise as assistants read it in a list; what it does not have is left out. `isOwn` is true or left out."""

    type: ExerciseType
    aliases: NotRequired[list[str]]
    level: NotRequired[Level]
    equipment: NotRequired[str]
    primaryMuscles: NotRequired[list[str]]
    secondaryMuscles: NotRequired[list[str]]
    isOwn: NotRequired[bool]


class ExerciseName(TypedDict):
    """The name and instructions of an exercise, deleted or not; `loadType` only if its loads are assistance."""

    _id: ObjectId
    name: str
    defaultInstructions: str | None
    loadType: NotRequired[LoadType]


class StoredExerciseName(ExerciseName):
    """Also whose exercise it is, null if it is shared, and when it was deleted."""

    companyId: ObjectId | None
    deletedAt: NotRequired[datetime | None]


class ExerciseKind(TypedDict):
    """What makes exercises similar; a company's own exercises have no movement pattern."""

    _id: ObjectId
    name: str
    muscleGroups: list[TrainedMuscle]
    movementPattern: NotRequired[MovementPattern | None]


class ExerciseMuscles(TypedDict):
    """The muscles that an exercise trains."""

    _id: ObjectId
    muscleGroups: list[TrainedMuscle]


class SharedExercise(ExerciseContent, Movement):
    """An exercise to publish in the shared library; `digest` changes with its content."""

    _id: ObjectId
    translations: Translations
    digest: str


class ExerciseUse(TypedDict):
    """How often the company has planned an exercise."""

    exerciseId: ObjectId
    count: int


class UpdatedExercise(TypedDict):
    """When an exercise was last changed."""

    _id: ObjectId
    updatedAt: datetime


class SearchEntry(TypedDict):
    """What is searched of an exercise.

    `search` has the normalized names, aliases, tags, muscles and equipment, a line each. `names` is the number of its
    first lines that are names: the one in English first, then translations. `aliases` is how many aliases follow, in
    any language. `isOwn`: it is not shared. `isCommon`: it is the same for all companies, without aliases of their own.
    """

    _id: ObjectId
    search: str
    names: int
    aliases: int
    isOwn: bool
    isCommon: bool


class ExercisePage(Page[Exercise]):
    """A page of exercises; `tolerant` is true if the search also includes matches with a typing error."""

    tolerant: NotRequired[bool]


class ExerciseLibrary(TypedDict):
    """The shared library (`companyId` null) or the company's own."""

    _id: ObjectId
    name: str
    companyId: ObjectId | None
