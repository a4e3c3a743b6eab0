"""The library documents that items refer to: required to exist on write, looked up on read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ADDED, ExerciseName
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import Form
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricSet
from coaching_service.people.customers import bulk as customers
from coaching_service.training.body_weights import service as body_weights
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.training_maxes.models import ReferenceLoads, load_of
from coaching_service.training.workouts.items.content import (
    References,
    exercise_ids,
    has_instant,
    metric_set_ids,
    percent_exercise_ids,
)
from coaching_service.training.workouts.items.input_models import ItemChange, ItemFormInput, ItemInput
from coaching_service.training.workouts.items.models import ItemForm, WorkItem

Details = TypeVar("Details", ItemInput, ItemChange)


class PercentBase(NamedTuple):
    """What percentages of an exercise refer to, with the body weight that it includes: 0 if it includes none."""

    maximum: float
    body_weight: float

    def load_of(self, percent: float) -> float:
        """Return the load of a percentage, not rounded: what is added, where the body weight is included."""
        return max(self.maximum * percent / 100 - self.body_weight, 0)


async def resolve(ctx: Context, details: Details, previous: WorkItem | None = None) -> tuple[Details, References]:
    """Return what a coach sent of an item with its form copied into it, and the other documents it refers to.

    A form is copied as it is now, so that later changes do not affect scheduled items. Raises NotFound if a document
    does not exist; those that `previous` already referred to may have been deleted since.
    """
    form = details.get("form")
    if form is not None:
        form_id = form.get("formId")
        library_forms = {form_id: await forms.get(ctx, form_id)} if form_id is not None else {}
        details = {**details, "form": copy_form(form, library_forms)}
    known: Sequence[WorkItem] = [previous] if previous else []
    new_exercises = exercise_ids([details]) - exercise_ids(known)
    new_sets = metric_set_ids([details]) - metric_set_ids(known)
    found_sets: dict[ObjectId, MetricSet] = {set_id: await metric_sets.get(ctx, set_id) for set_id in new_sets}
    return details, References(await exercises.require(ctx, new_exercises), found_sets)


async def load_references(
    ctx: Context,
    items: Sequence[WorkItem],
    customer_id: ObjectId | None = None,
    known: Mapping[ObjectId, ExerciseName] | None = None,
    dates: Collection[str | None] = (),
) -> References:
    """Return what stored items refer to: documents of the libraries, deleted ones included, and what is the client's.

    `customer_id` is the client whose items they are; None for items of a program or template. `known`: their exercises,
    if they have been read. `dates`: those of their blocks.
    """
    names, sets, maxes, timezone = await gather_reads(
        ctx,
        load_exercises(ctx, items if known is None else []),
        metric_sets.get_by_id(ctx, metric_set_ids(items)),
        load_training_maxes(ctx, items, customer_id),
        load_timezone(ctx, items, customer_id),
    )
    names = names if known is None else known
    added = any(names[each].get("loadType") == ADDED for each, loads in maxes.items() if loads["trainingMax"] is None)
    weights = await _load_body_weights(ctx, customer_id, dates) if customer_id is not None and added else {}
    return References(names, sets, maxes, weights, timezone)


async def _load_body_weights(ctx: Context, customer_id: ObjectId, dates: Collection[str | None]) -> dict[str, float]:
    """Return what a client weighs on the dates of blocks that are planned; after today at least what is known today."""
    days, today = {day for day in dates if day is not None}, str(ctx.caller.today())
    known = await body_weights.find_on_dates(ctx, customer_id, {*days, today}, ctx.caller.company.load_unit)
    of_today = {day: known[today] for day in days if day > today and today in known}
    return {**of_today, **known}


async def load_exercises(ctx: Context, items: Iterable[WorkItem]) -> dict[ObjectId, ExerciseName]:
    """Return the exercises that items plan, or that were done or chosen in their place, deleted ones included."""
    return await exercises.get_names(ctx, {exercise_id for item in items for exercise_id in item["exerciseIds"]})


async def load_training_maxes(
    ctx: Context, items: Sequence[WorkItem], customer_id: ObjectId | None
) -> dict[ObjectId, ReferenceLoads]:
    """Return the training maximums and estimates that the percentages of items refer to; none without a client."""
    ids = percent_exercise_ids(items)
    if customer_id is None or not ids:
        return {}
    return await training_maxes.load_reference_loads(ctx, customer_id, ids)


async def load_percent_bases(
    ctx: Context, customer_id: ObjectId, exercise_ids: Iterable[ObjectId]
) -> dict[ObjectId, PercentBase]:
    """Return what percentages of exercises refer to today; exercises without it are left out."""
    loads = await training_maxes.load_reference_loads(ctx, customer_id, exercise_ids)
    names, today = await exercises.get_names(ctx, loads), str(ctx.caller.today())
    whole = {each for each in loads if loads[each]["trainingMax"] is None and names[each].get("loadType") == ADDED}
    weights = await body_weights.find_on_dates(ctx, customer_id, [today] if whole else [], ctx.caller.company.load_unit)
    bases: dict[ObjectId, PercentBase] = {}
    for each, of_exercise in loads.items():
        maximum, body_weight = load_of(of_exercise), weights.get(today) if each in whole else 0
        if maximum is not None and body_weight is not None:
            bases[each] = PercentBase(maximum, body_weight)
    return bases


async def load_timezone(ctx: Context, items: Iterable[WorkItem], customer_id: ObjectId | None) -> str | None:
    """Return the time zone of the client, if the time of a reminder depends on it."""
    if customer_id is None or not any(has_instant(item) for item in items):
        return None
    return await customers.get_timezone(ctx, customer_id)


def copy_form(form: ItemForm | ItemFormInput, library_forms: Mapping[ObjectId, Form]) -> ItemForm:
    """Return the form of an item: a copy of one of the library, given by identifier, or one made for this item."""
    form_id = form.get("formId")
    if form_id is not None:
        library_form = library_forms[form_id]
        return {"formId": form_id, "name": library_form["name"], "questions": library_form["questions"]}
    return {"formId": None, "name": form["name"], "questions": forms.assign_question_ids(form["questions"])}
