"""Exercises as they are sent, stored and read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast, get_args

from marshmallow import Schema, fields

from coaching_service.core import external_identity, validation
from coaching_service.core import fields as core_fields
from coaching_service.core.database.declared import Returned, Stored
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import invalid_field
from coaching_service.core.events import DomainEvent
from coaching_service.core.fields import Description, input_of, output_of, query_of
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.list_selection import RECORDS, Page, RecordQuery, page_of
from coaching_service.core.media import GIF, VIDEO_TYPES, file_extension

# --- The muscle groups that exercises train; they are the same for every company --------------------------------------


MUSCLES = (
    "Chest",
    "Front Deltoids",
    "Side Deltoids",
    "Rear Deltoids",
    "Rotator Cuff",
    "Biceps",
    "Triceps",
    "Forearms",
    "Latissimus Dorsi",
    "Upper Back",
    "Trapezius",
    "Lower Back",
    "Abdominals",
    "Obliques",
    "Hip Flexors",
    "Glutes",
    "Quadriceps",
    "Hamstrings",
    "Adductors",
    "Abductors",
    "Calves",
    "Tibialis Anterior",
    "Neck",
)

MUSCLE_NAMES: dict[ObjectId, str] = {stable_id("muscle", name): name for name in MUSCLES}
MUSCLE_IDS: dict[str, ObjectId] = {name: identifier for identifier, name in MUSCLE_NAMES.items()}


# --- Exercises --------------------------------------------------------------------------------------------------------


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
LoadType = Literal["load", "assistance", "added"]
LOAD: LoadType = "load"
ASSISTANCE: LoadType = "assistance"
ADDED: LoadType = "added"
LOAD_TYPES: tuple[LoadType, ...] = get_args(LoadType)
# What a list of exercises can be restricted to, in place of a type.
MINE, PUBLIC = "my", "public"
TYPES: tuple[ExerciseType, ...] = get_args(ExerciseType)
LEVELS: tuple[Level, ...] = get_args(Level)
_LOAD_TYPE = (
    "What the loads of its sets mean. `load`: more is better. `assistance`: help, as of an assisted pull-up machine: "
    "less is better, and there is no estimated 1RM and no volume load. `added`: added to the body's weight, as of "
    "pull-ups and dips: the estimated 1RM is of the whole weight, by the latest body weight of the last 30 days."
)


def _movement(text: str) -> Description:
    return Description(f"{text}; null where it does not apply, and for a company's own exercise.")


class MuscleGroup(TypedDict):
    """A muscle group."""

    _id: ObjectId
    name: str


class TrainedMuscle(MuscleGroup):
    """A muscle that an exercise trains, and whether it does most of the work."""

    role: Role


class MuscleRole(TypedDict):
    """A muscle that an exercise trains."""

    _id: ObjectId
    role: Annotated[Role, core_fields.Default("primary")]


class NewExerciseMedia(TypedDict):
    """An image, video, animation or page about an exercise."""

    _id: NotRequired[ObjectId]
    type: MediaType
    url: Annotated[str, validation.Link()]
    source: Annotated[str | None, validation.Text(), Description("Where it comes from, such as YouTube.")]
    key: Annotated[str | None, validation.Text(), Description("Its identifier at the source.")]
    thumbnailUrl: Annotated[
        str | None, validation.Link(), Description("A link to a small picture of it; null without one.")
    ]


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


class ExerciseMedia(TypedDict):
    """An image, video, animation or page about an exercise."""

    _id: ObjectId
    type: MediaType
    key: Annotated[str | None, Description("Its identifier at the source, or the storage key of an upload.")]
    source: Annotated[str | None, Description("Where it comes from; `upload` for a file.")]
    url: Annotated[
        str, fields.Url(), Description("A link to it; to an uploaded file it is signed and valid for two hours.")
    ]
    thumbnailUrl: Annotated[str | None, fields.Url(), Description("A link to a small picture of it; null without one.")]


class TranslatedNames(TypedDict):
    """The name and the aliases of a shared exercise in another language."""

    name: Annotated[str, Description("The name in this language.")]
    aliases: Annotated[list[str], Description("Other names in this language.")]


class ExerciseTranslations(TypedDict):
    """The translations of a shared exercise."""

    es: Annotated[TranslatedNames, Description("Spanish.")]


class Movement(TypedDict):
    """How a shared exercise moves; null where it does not apply, and for a company's own exercises."""

    movementPattern: Annotated[MovementPattern | None, _movement("The kind of movement")]
    force: Annotated[Force | None, _movement("Whether the load is pushed, pulled or held still")]
    mechanic: Annotated[Mechanic | None, _movement("Whether several joints move (`compound`) or one (`isolation`)")]
    laterality: Annotated[
        Laterality | None, _movement("Whether both sides work together, one side at a time, or both in turn")
    ]


class _Texts(TypedDict):
    name: Annotated[str, validation.Text(), Description(argument="Its name.")]
    aliases: Annotated[list[str], validation.StringList(max_length=200), core_fields.Default(list)]
    type: Annotated[ExerciseType, core_fields.Default("strength"), Description(argument="Its kind.")]
    level: Level | None
    defaultInstructions: Annotated[
        str | None,
        validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True),
        Description(argument="How to do it."),
    ]
    videoLink: Annotated[str | None, validation.Link(), Description(argument="A video of it.")]
    tags: Annotated[list[str], validation.StringList(), core_fields.Default(list)]


class _Roles(TypedDict):
    muscleGroups: Annotated[
        list[MuscleRole],
        validation.ListOf(fields.Nested(input_of(MuscleRole)), maximum=23, allow_none=True),
        core_fields.Default(list),
    ]


class _Muscles(TypedDict):
    muscleGroups: list[TrainedMuscle]


class _Equipment(TypedDict):
    equipment: Annotated[str | None, validation.Text(), Description(argument="What it needs.")]


class _Loads(TypedDict):
    loadType: Annotated[
        LoadType, core_fields.Default(LOAD), Description(request=f"{_LOAD_TYPE} Default: `load`.", response=_LOAD_TYPE)
    ]


class ExerciseDetails(_Texts, _Equipment, _Loads):
    """The fields of an exercise that are stored as they are sent."""


class NewExercise(_Texts, _Roles, _Equipment, _Loads, external_identity.IdentityInput):
    """An exercise to create."""

    media: Annotated[
        list[NewExerciseMedia],
        validation.ListOf(fields.Nested(input_of(NewExerciseMedia)), maximum=40, allow_none=True),
        core_fields.Default(list),
        Description(
            "The links of the exercise. Uploaded files are not affected: those named by `_id` take the place in which "
            "they are sent, others stay at the end."
        ),
    ]


class ExerciseTexts(_Texts, _Muscles, _Equipment):
    """The fields of an exercise that are returned as they are stored."""


class ExerciseContent(ExerciseTexts):
    """The content of a stored exercise; without `loadType` its loads are loads."""

    loadType: NotRequired[LoadType]
    media: list[StoredMedia]
    libraryId: ObjectId


class StoredExercise(ExerciseContent, external_identity.StoredIdentity, Returned):
    """A stored exercise; `companyId` is null if it is shared, and only shared ones have the last fields."""

    companyId: ObjectId | None
    movementPattern: NotRequired[MovementPattern | None]
    force: NotRequired[Force | None]
    mechanic: NotRequired[Mechanic | None]
    laterality: NotRequired[Laterality | None]
    translations: NotRequired[ExerciseTranslations]


class Exercise(ExerciseTexts, _Loads, Movement, external_identity.Identity, Returned):
    """An exercise as the company sees it: its own, or a shared one (`companyId` null) with the company's override."""

    translations: Annotated[
        ExerciseTranslations | None, Description("Names in other languages; null for a company's own exercise.")
    ]
    media: list[ExerciseMedia]
    image: Annotated[str | None, fields.Url()]
    thumbnail: Annotated[str | None, fields.Url()]
    libraryId: ObjectId
    companyId: ObjectId | None


# An exercise as a client sees it.
OwnExercise: TypeAlias = core_fields.Part[
    Exercise,
    Literal[
        "_id",
        "name",
        "type",
        "level",
        "defaultInstructions",
        "videoLink",
        "muscleGroups",
        "equipment",
        "loadType",
        "media",
        "image",
        "thumbnail",
    ],
]
ExerciseChange: TypeAlias = core_fields.Change[NewExercise]
ExerciseFields: TypeAlias = core_fields.Partial[ExerciseContent]


class ExerciseReference(TypedDict):
    """An exercise."""

    _id: ObjectId
    name: str


class ExerciseName(TypedDict):
    """The name and instructions of an exercise, deleted or not; `loadType` only if its loads are not just loads."""

    _id: ObjectId
    name: str
    defaultInstructions: str | None
    loadType: NotRequired[
        Annotated[
            LoadType,
            validation.Choice(ASSISTANCE, ADDED),
            Description(response="Only if the loads are help, and less is better, or added to the body's weight."),
            core_fields.Optional,
        ]
    ]


class StoredExerciseName(ExerciseName):
    """Also whose exercise it is, null if it is shared, and when it was deleted."""

    companyId: ObjectId | None
    deletedAt: NotRequired[datetime | None]


class ExerciseKind(TypedDict):
    """What makes exercises similar; a company's own exercises have no movement pattern."""

    _id: ObjectId
    name: str
    muscleGroups: list[TrainedMuscle]
    equipment: str | None
    movementPattern: NotRequired[MovementPattern | None]


class SharedExercise(ExerciseContent, Movement):
    """An exercise to publish in the shared library; `digest` changes with its content."""

    _id: ObjectId
    translations: ExerciseTranslations
    digest: str


class ExerciseUse(TypedDict):
    """How often the company has planned an exercise."""

    exerciseId: ObjectId
    count: int


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


class OwnExerciseQuery(RecordQuery):
    """The filters of a company's own exercises."""

    keywords: NotRequired[
        Annotated[
            str,
            Description(
                "Every word must occur in name, alias, tag, muscle or equipment; names and aliases in English or "
                "Spanish, and aliases that the company has added. If fewer than 5 exercises match, those that match "
                "with one typing error follow."
            ),
        ]
    ]
    libraryId: NotRequired[ObjectId]


class ExerciseQuery(OwnExerciseQuery):
    """The filters of all exercises a company can use."""

    type: NotRequired[
        Annotated[
            str,
            validation.Choice(MINE, PUBLIC, *TYPES),
            Description(
                request="`my`, `public`, or a type of exercise.",
                argument="my: the company's own; public: the shared library.",
            ),
        ]
    ]


class ExercisePage(Page[Exercise]):
    """A page of exercises; `tolerant` is true if the search also includes matches with a typing error."""

    tolerant: NotRequired[bool]


class ExerciseLibrary(TypedDict):
    """A library of exercises: the shared one (`companyId` null) or a company's own."""

    _id: ObjectId
    name: str
    companyId: ObjectId | None


# --- Domain events about exercises ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadTypeChanged(DomainEvent):
    """What the loads of one of the company's exercises mean changed: figures derived from its logs follow it."""

    exercise_id: ObjectId


# --- What a company changes in shared exercises -----------------------------------------------------------------------


class _Override(TypedDict):
    videoLink: Annotated[str | None, validation.Link()]
    defaultInstructions: Annotated[str | None, validation.Text(max_length=validation.TEXT_LENGTH)]
    aliases: Annotated[
        list[str],
        validation.StringList(max_length=200),
        core_fields.Default(list),
        Description("Names that the company uses, in addition to the shared aliases."),
    ]


class ExerciseOverride(_Override):
    """What the company changes in a shared exercise; a field that is absent or null is as in the shared library."""

    version: NotRequired[Annotated[int, validation.Version()]]


class OverrideContent(_Override):
    """What a company changes in a shared exercise, and the media it adds."""

    media: list[StoredMedia]


class Override(OverrideContent, Stored):
    """The stored changes of a company in a shared exercise."""

    exerciseId: ObjectId


OverrideFields: TypeAlias = core_fields.Partial[OverrideContent]


# --- The list of an exercise's media: links that a coach enters, and uploaded files -----------------------------------


MAX_UPLOADS = 20
UPLOAD_SOURCE = "upload"
# Of the links of exercises and of overrides in an import.
MEDIA_CHECKS: dict[str, fields.Field[Any]] = {
    "videoLink": validation.Link(),
    "media.url": validation.Link(),
    "media.thumbnailUrl": validation.Link(),
}


def merge(
    stored: Sequence[StoredMedia], sent: Sequence[NewExerciseMedia], *, keep_equal: bool = False
) -> list[StoredMedia]:
    """Return the media in the order in which they are sent.

    Links that are not sent are dropped. Uploaded files stay as they are: they follow the links if they are not sent,
    and are only removed one by one. With `keep_equal`, a link without an identifier has the identifier of an equal one.
    """
    known = {each["_id"]: each for each in stored}
    merged: list[StoredMedia] = []
    for each in sent:
        if (media_id := each.get("_id")) is None and keep_equal:
            media_id = next((link["_id"] for link in known.values() if {**each, "_id": link["_id"]} == link), None)
        previous = known.pop(media_id, None) if media_id else None
        fields = {name: value for name, value in each.items() if name != "_id"}
        link = {"_id": previous["_id"] if previous else ObjectId(), **fields}
        merged.append(previous if previous and "fileId" in previous else cast("StoredMedia", link))
    return [*merged, *(each for each in known.values() if "fileId" in each)]


def with_file(stored: Sequence[StoredMedia], file: StoredFile) -> tuple[list[StoredMedia], ObjectId]:
    """Return the media with an uploaded file at the end, and the identifier of the new entry.

    Raises InvalidFields if there are 20 uploaded files already.
    """
    if sum("fileId" in each for each in stored) >= MAX_UPLOADS:
        raise invalid_field("file", f"must not be more than {MAX_UPLOADS} for one exercise", code="TOO_MANY")
    entry: StoredMedia = {
        "_id": ObjectId(),
        "type": "video" if file.content_type in VIDEO_TYPES else "gif" if file.content_type == GIF else "image",
        "key": f"{file.id}{file_extension(file.content_type)}",
        "source": UPLOAD_SOURCE,
        "url": None,
        "thumbnailUrl": None,
        "fileId": file.id,
        "thumbnailId": file.thumbnail_id,
    }
    return [*stored, entry], entry["_id"]


def without(stored: Sequence[StoredMedia], media_id: ObjectId) -> tuple[list[StoredMedia], list[ObjectId]] | None:
    """Return the media without an entry, and the files to delete; None if there is no such entry."""
    removed = [each for each in stored if each["_id"] == media_id]
    return ([each for each in stored if each["_id"] != media_id], file_ids(removed)) if removed else None


def file_ids(media: Sequence[StoredMedia]) -> list[ObjectId]:
    """Return the files of uploaded media, with their thumbnails."""
    ids = [(each.get("fileId"), each.get("thumbnailId")) for each in media]
    return [file_id for pair in ids for file_id in pair if file_id]


# --- The queries of exercises, and the schemas of their responses that are not only a TypedDict -----------------------


NEW_EXERCISE = input_of(NewExercise, external_identity.IdentityFields)
EXERCISE = output_of(Exercise, external_identity.IdentityResult)
OWN_EXERCISE_QUERY = query_of(OwnExerciseQuery, RECORDS)
EXERCISE_QUERY = query_of(ExerciseQuery, OWN_EXERCISE_QUERY)
OWN_EXERCISE = output_of(OwnExercise, name="OwnExercise", description="An exercise as a client sees it.")


_PAGE = page_of(EXERCISE)
_TOLERANT = {"description": "True if matches with one typing error are included.", "optional": True}
EXERCISE_PAGE: type[Schema] = type(_PAGE.__name__, (_PAGE,), {"tolerant": fields.Boolean(metadata=_TOLERANT)})
