"""New items from what coaches send, many at once: each library is read once, and an error names the entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import Form
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.training.workouts.items.content import create_item, exercise_ids, metric_set_ids
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.references import copy_form

T = TypeVar("T")
# Where a reference is in the request, such as `items.2.exerciseId`, and the identifier.
Reference = tuple[str, ObjectId]


async def create_items(
    ctx: Context, details: Mapping[int, ItemInput], previous: Sequence[WorkItem] = ()
) -> list[WorkItem]:
    """Return new items, by their position in the field `items`, to be stored by the caller in place of `previous` ones.

    Raises as `resolve_items`; exercises and metric sets of `previous` items may have been deleted since.
    """
    entries = {f"items.{index}": item for index, item in details.items()}
    return [create_item(item) for item in await _resolve(ctx, entries, previous)]


async def resolve_items(ctx: Context, lists: Mapping[str, Sequence[ItemInput]]) -> list[list[ItemInput]]:
    """Return lists of items, by the path of their field in the request, with their forms copied into them.

    Raises NotFound, naming the entry (`items.2.exerciseId`), if a document that an item refers to does not exist.
    """
    entries = {f"{path}.{index}": item for path, items in lists.items() for index, item in enumerate(items)}
    resolved = iter(await _resolve(ctx, entries))
    return [[next(resolved) for _ in items] for items in lists.values()]


async def _resolve(
    ctx: Context, entries: Mapping[str, ItemInput], previous: Sequence[WorkItem] = ()
) -> list[ItemInput]:
    known = exercise_ids(previous) | metric_set_ids(previous)
    exercise_references, set_references, form_references = (
        [each for path, item in entries.items() for each in references(path, item) if each[1] not in known]
        for references in (_exercise_references, _metric_set_references, _form_references)
    )
    await _require_exercises(ctx, exercise_references)
    await _read_each(ctx, set_references, metric_sets.get)
    library_forms = await _read_each(ctx, form_references, forms.get)
    return [_with_form(item, library_forms) for item in entries.values()]


def _exercise_references(path: str, item: ItemInput) -> Iterator[Reference]:
    if exercise_id := item.get("exerciseId"):
        yield f"{path}.exerciseId", exercise_id
    for index, entry in enumerate(item.get("circuitExercises", ())):
        yield f"{path}.circuitExercises.{index}.exerciseId", entry["exerciseId"]


def _metric_set_references(path: str, item: ItemInput) -> Iterator[Reference]:
    if fields := item.get("metricsFields"):
        yield f"{path}.metricsFields.metricsSetId", fields["metricsSetId"]


def _form_references(path: str, item: ItemInput) -> Iterator[Reference]:
    form = item.get("form")
    if form is not None and (form_id := form.get("formId")):
        yield f"{path}.form.formId", form_id


async def _require_exercises(ctx: Context, references: Sequence[Reference]) -> None:
    known = await exercises.get_usable_names(ctx, {exercise_id for _, exercise_id in references})
    for path, exercise_id in references:
        if exercise_id not in known:
            raise _named(NotFound("exercise"), path)


async def _read_each(
    ctx: Context, references: Sequence[Reference], read: Callable[[Context, ObjectId], Awaitable[T]]
) -> dict[ObjectId, T]:
    documents: dict[ObjectId, T] = {}
    for path, identifier in references:
        if identifier not in documents:
            try:
                documents[identifier] = await read(ctx, identifier)
            except NotFound as error:
                raise _named(error, path) from None
    return documents


def _named(error: NotFound, path: str) -> NotFound:
    return NotFound(error.details["resource"], f"{path}: {error.message}")


def _with_form(item: ItemInput, library_forms: Mapping[ObjectId, Form]) -> ItemInput:
    form = item.get("form")
    return item if form is None else {**item, "form": copy_form(form, library_forms)}
