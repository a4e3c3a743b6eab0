"""What items name in the libraries: checked when they are written, looked up when they are read."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.library.exercises import service as exercises
from coaching_service.library.forms import service as forms
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.training.workouts.items import Named, exercise_ids, metric_set_ids


async def settled(ctx: Context, details: Document, but: Document | None = None) -> tuple[Document, Named]:
    """What a coach sent of an item, with its form written out, and what else it names.

    A form is copied as it is now, so that later changes to it leave scheduled items alone. Raises NotFound when
    something named is not to be had; what the item `but` names already may have been deleted since.
    """
    if details.get("form") is not None:
        details = details | {"form": await _written_out(ctx, details["form"])}
    named = Named()
    if wanted := exercise_ids([details]) - exercise_ids([but or {}]):
        named = Named(exercises=await exercises.require(ctx, wanted))
    for set_id in metric_set_ids([details]) - metric_set_ids([but or {}]):
        named.metric_sets[set_id] = await metric_sets.read(ctx, set_id)
    return details, named


async def named_by(ctx: Context, items: list[Document]) -> Named:
    """What stored items name, deleted things included."""
    wanted, sets = {exercise for item in items for exercise in item["exerciseIds"]}, metric_set_ids(items)
    return Named(
        exercises=await exercises.names(ctx, wanted) if wanted else {},
        metric_sets={**await metric_sets.load_by_id(ctx, sets)},
    )


async def _written_out(ctx: Context, form: Document) -> Document:
    if form.get("formId") is not None:
        found = await forms.read(ctx, form["formId"])
        return {"formId": found["_id"], "name": found["name"], "questions": found["questions"]}
    return {"formId": None, "name": form["name"], "questions": forms.assign_question_ids(form["questions"])}
