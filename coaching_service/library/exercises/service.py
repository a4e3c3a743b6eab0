"""What a coach does with exercises."""

from __future__ import annotations

from collections.abc import Iterable

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter, Ownership
from coaching_service.core.errors import BadRequest, Forbidden, NotFound
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.core.text import normalize
from coaching_service.library.exercises import muscles, store

SHARED_LIBRARY = stable_id("library", "shared")


async def page(
    ctx: Context,
    *,
    page: int,
    size: int,
    keywords: str = "",
    kind: str | None = None,
    own_only: bool = False,
    library_id: ObjectId | None = None,
) -> Page[Document]:
    """One page of the exercises this company can use. `kind`: `my`, `public`, or a type of exercise."""
    where: Filter = {}
    ownership: Ownership = "own" if own_only or kind == "my" else "shared" if kind == "public" else "all"
    if ownership == "all" and kind is not None:
        where["type"] = kind
    if library_id is not None:
        where["libraryId"] = library_id
    docs, total = await store.page(
        ctx, where, ownership=ownership, keywords=normalize(keywords), skip=skip_of(page, size), limit=size
    )
    return page_document(docs, total, page, size)


async def read(ctx: Context, exercise_id: ObjectId) -> Document:
    """One exercise, shared or own. Raises NotFound."""
    if (exercise := await store.one(ctx, exercise_id)) is None:
        raise NotFound("exercise")
    return exercise


async def require(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, Document]:
    """`{_id, name, defaultInstructions}` by identifier. Raises NotFound when one is not to be had for new training."""
    wanted = set(exercise_ids)
    found = {exercise["_id"]: exercise for exercise in await store.usable(ctx, list(wanted))}
    if found.keys() != wanted:
        raise NotFound("exercise")
    return found


async def names(ctx: Context, exercise_ids: Iterable[ObjectId]) -> dict[ObjectId, Document]:
    """`{_id, name, defaultInstructions}` by identifier of the exercises named, deleted ones included."""
    wanted = set(exercise_ids)
    return {found["_id"]: found for found in await store.names(ctx, list(wanted))} if wanted else {}


async def require_any(ctx: Context, exercise_id: ObjectId) -> None:
    """Raise NotFound unless the exercise is one this company has or had."""
    if not await store.names(ctx, [exercise_id]):
        raise NotFound("exercise")


async def trained_muscles(ctx: Context, exercise_ids: list[ObjectId]) -> dict[ObjectId, list[Document]]:
    """`[{_id, name, role}]` by exercise, deleted ones included."""
    found = await store.muscles(ctx, exercise_ids) if exercise_ids else []
    return {exercise["_id"]: exercise["muscleGroups"] for exercise in found}


async def create(ctx: Context, details: Document) -> Document:
    """A new exercise of the company's own. Raises NotFound for an unknown muscle group."""
    exercise = {**_checked(details), "libraryId": ctx.company_id}
    return await store.add(ctx, exercise | _pictures(exercise))


async def change(ctx: Context, exercise_id: ObjectId, details: Document) -> Document:
    """Change what is sent of one of the company's own.

    Raises NotFound, Forbidden for a shared one, Conflict when it has been changed since `version`.
    """
    details = _checked(details)
    version = details.pop("version", None)
    await _require_own(ctx, exercise_id)

    def mutate(stored: Document) -> Document:
        return details | _pictures(stored | details) if details else {}

    changed = await store.rewrite(ctx, exercise_id, mutate, version)
    if changed is None:
        raise NotFound("exercise")
    return changed


async def remove(ctx: Context, exercise_id: ObjectId) -> None:
    """Delete one of the company's own; blocks already scheduled keep its name. Raises NotFound, Forbidden."""
    await _require_own(ctx, exercise_id)
    if not await store.bury(ctx, exercise_id):
        raise NotFound("exercise")


def libraries(ctx: Context) -> list[Document]:
    """The shared library and the company's own; the latter has the company's identifier."""
    company = ctx.caller.company
    return [
        {"_id": SHARED_LIBRARY, "name": "Shared exercises", "companyId": None},
        {"_id": company.id, "name": company.name, "companyId": company.id},
    ]


def muscle_groups() -> list[Document]:
    """Every muscle group, `{_id, name}`."""
    return [{"_id": identifier, "name": name} for identifier, name in muscles.NAME_OF.items()]


async def _require_own(ctx: Context, exercise_id: ObjectId) -> None:
    exercise = await store.one(ctx, exercise_id, ("companyId",))
    if exercise is None:
        raise NotFound("exercise")
    if exercise["companyId"] is None:
        raise Forbidden("Shared exercises cannot be changed; create one of your own")


def _checked(details: Document) -> Document:
    """`details` with the muscles named. Raises NotFound for an unknown one, BadRequest for one named twice."""
    if "muscleGroups" not in details:
        return dict(details)
    roles = {muscle["_id"]: muscle["role"] for muscle in details["muscleGroups"]}
    if len(roles) < len(details["muscleGroups"]):
        raise BadRequest(["muscleGroups must name each muscle only once"])
    if not roles.keys() <= muscles.NAME_OF.keys():
        raise NotFound("muscle group")
    named = [{"_id": key, "name": muscles.NAME_OF[key], "role": role} for key, role in roles.items()]
    return details | {"muscleGroups": named}


def _pictures(exercise: Document) -> Document:
    image = next((medium["url"] for medium in exercise["media"] if medium["type"] == "image"), None)
    return {"image": image, "thumbnail": image}
