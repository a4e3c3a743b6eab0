"""Exercises over REST."""

from __future__ import annotations

from coaching_service.core import external_identity
from coaching_service.core.auth import EXERCISES, coach, coach_with_any
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.external_identity import ExternalId, Upserted
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.list_selection import part_of
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.core.validation import complete_upsert, patch_of, upsert_of
from coaching_service.library.exercises import models, name_resolution, service, store
from coaching_service.library.exercises.name_resolution import ExerciseNames, ResolvedExerciseNames

routes = Routes("", tag="Exercises")


@routes.get(
    "/exercises/unified",
    access=coach(EXERCISES.VIEW),
    query=models.EXERCISE_QUERY(),
    returns=models.EXERCISE_PAGE,
    selects_fields=True,
)
async def list_exercises(ctx: Context, query: models.ExerciseQuery) -> models.ExercisePage:
    """List exercises, shared and own.

    With `keywords` the best matches first: exact name or alias, beginning of the name, whole words of the name, words
    of aliases, other matches; then how often the company uses the exercise. Otherwise by name.

    The order of matches changes while others write. So only the first page by `keywords` has a `nextCursor`: the other
    matches follow it by identifier, each once. Later pages by `pageNum` have none.
    """
    return await _page(ctx, query, kind=query.get("type"))


@routes.get(
    "/exercises",
    access=coach(EXERCISES.VIEW),
    query=models.OWN_EXERCISE_QUERY(),
    returns=models.EXERCISE_PAGE,
    selects_fields=True,
)
async def list_own_exercises(ctx: Context, query: models.OwnExerciseQuery) -> models.ExercisePage:
    """List the company's own exercises.

    With `keywords` in the order of the list of all exercises, and with its cursors.
    """
    return await _page(ctx, query, own_only=True)


async def _page(
    ctx: Context, query: models.OwnExerciseQuery, *, own_only: bool = False, kind: str | None = None
) -> models.ExercisePage:
    return await service.list_exercises(
        ctx,
        keywords=query.get("keywords", ""),
        library_id=query.get("libraryId"),
        external_id=query.get("externalId"),
        own_only=own_only,
        kind=kind,
        **part_of(query),
    )


routes.post(
    "/exercises",
    access=coach(EXERCISES.CREATE),
    body=models.NEW_EXERCISE(),
    returns=models.EXERCISE,
    errors=(NotFound,),
    example={"name": "Garage Squat", "type": "strength", "tags": ["squat"], "equipment": "Barbell"},
    operation_id="createExercise",
)(service.create)


@routes.post(
    "/exercises/resolve",
    access=coach(EXERCISES.VIEW),
    status=200,
    read_only=True,
    example={"names": ["Back squat", "DB bench press"]},
)
async def resolve_exercise_names(ctx: Context, body: ExerciseNames) -> ResolvedExerciseNames:
    """Find the exercises that names mean.

    Names, aliases and abbreviations are found as in the list of exercises. It changes nothing: a read-only key may call
    it.
    """
    return {"results": await name_resolution.resolve_names(ctx, body["names"])}


@routes.put(
    "/exercises/by-external-id/{externalId}",
    access=coach_with_any(EXERCISES.CREATE, EXERCISES.EDIT),
    path_fields={"externalId": ExternalId()},
    body=upsert_of(models.NEW_EXERCISE, name="ExerciseUpsert"),
    returns=models.EXERCISE,
    errors=(NotFound,),
    rolls_back=True,
    example={"name": "Garage Squat", "type": "strength"},
)
async def upsert_exercise(ctx: Context, external_id: str, body: models.ExerciseChange) -> Upserted:
    """Create or change the exercise with an external identifier.

    201 if it is new; otherwise 200, as changed by PATCH, and unchanged if it has all of it already. It needs the
    permission of what it does.
    """
    return await external_identity.upsert(
        ctx,
        lambda tx: store.find_id_by_external_id(tx, external_id),
        lambda tx, exercise_id: service.update(tx, exercise_id, body, only_differences=True),
        lambda tx: service.create(tx, complete_upsert(models.NEW_EXERCISE(), body) | {"externalId": external_id}),
        (EXERCISES.CREATE, EXERCISES.EDIT),
    )


routes.get(
    "/exercises/by-external-id/{externalId}",
    access=coach(EXERCISES.VIEW),
    path_fields={"externalId": ExternalId()},
    returns=models.EXERCISE,
    selects_fields=True,
    operation_id="getExerciseByExternalId",
)(service.get_by_external_id)


routes.get(
    "/exercises/{exerciseId}",
    access=coach(EXERCISES.VIEW),
    returns=models.EXERCISE,
    selects_fields=True,
    operation_id="getExercise",
)(service.get)


routes.patch(
    "/exercises/{exerciseId}",
    access=coach(EXERCISES.EDIT),
    body=patch_of(models.NEW_EXERCISE, name="ExerciseChange"),
    returns=models.EXERCISE,
    example={"level": "beginner", "version": 0},
    operation_id="updateExercise",
)(service.update)


routes.delete("/exercises/{exerciseId}", access=coach(EXERCISES.DELETE), operation_id="deleteExercise")(service.delete)


routes.put(
    "/exercises/{exerciseId}/override",
    access=coach(EXERCISES.EDIT),
    returns=models.EXERCISE,
    errors=(Conflict,),
    example={"videoLink": "https://video.example.com/squat", "aliases": ["Box squat Tuesday"]},
    operation_id="replaceExerciseOverride",
)(service.set_override)


routes.delete(
    "/exercises/{exerciseId}/override",
    access=coach(EXERCISES.EDIT),
    returns=models.EXERCISE,
    status=200,
    errors=(Conflict,),
    operation_id="deleteExerciseOverride",
)(service.remove_override)


routes.post(
    "/exercises/{exerciseId}/media",
    access=coach(EXERCISES.EDIT),
    multipart=MultipartBody("file", MEDIA_TYPES, size_limit="attachment", file_required=True),
    example={},
    operation_id="uploadExerciseMedia",
)(service.add_media)


routes.delete(
    "/exercises/{exerciseId}/media/{mediaId}", access=coach(EXERCISES.EDIT), operation_id="deleteExerciseMedia"
)(service.remove_media)


@routes.get("/exercise-libraries", access=coach(EXERCISES.VIEW))
async def list_exercise_libraries(ctx: Context) -> list[models.ExerciseLibrary]:
    """List the exercise libraries."""
    company = ctx.caller.company
    return [
        {"_id": service.SHARED_LIBRARY, "name": "Shared exercises", "companyId": None},
        {"_id": company.id, "name": company.name, "companyId": company.id},
    ]


@routes.get("/muscle-groups", access=coach(EXERCISES.VIEW))
async def list_muscle_groups(_: Context) -> list[models.MuscleGroup]:
    """List the muscle groups."""
    return service.list_muscle_groups()
