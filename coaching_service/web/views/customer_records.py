"""A client's personal records and training maximums."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Identifier, Input, Number
from coaching_service.library.exercises import service as exercises
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.training_maxes.models import TrainingMax
from coaching_service.training.workouts.set_schemas import MAX_LOAD
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.activity_descriptions import RECORD_TYPES
from coaching_service.web.views.customer_layout import customer_path, load_header

pages = Pages("/app/customers/{customerId}")


class _RecordsQuery(Input):
    exerciseId = Identifier(allow_none=True, load_default=None)


class _TrainingMaxForm(Input):
    exerciseId = Identifier(required=True)
    value = Number(minimum=0, maximum=MAX_LOAD, allow_none=True, load_default=None)


class _NamedMax(TypedDict):
    """A training maximum with the name of its exercise."""

    exerciseName: str
    value: float | None
    updatedAt: datetime


@pages.get("/records", access=coach(CUSTOMERS.VIEW), query=_RecordsQuery(), template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """A client's personal records and training maximums; the query names the exercise to set the maximum of."""
    customer, records, maxes = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        personal_records.list_records(ctx, customer_id),
        training_maxes.list_training_maxes(ctx, customer_id),
    )
    names = await _load_names(ctx, records, maxes, query["exerciseId"])
    named: list[_NamedMax] = [
        {"exerciseName": names[each["exerciseId"]], "value": each["value"], "updatedAt": each["updatedAt"]}
        for each in maxes
    ]
    return {
        "customer": customer,
        "records": records,
        "record_types": RECORD_TYPES,
        "maxes": sorted(named, key=lambda each: each["exerciseName"].casefold()),
        "exercises": sorted(((str(key), name) for key, name in names.items()), key=lambda pair: pair[1].casefold()),
        "chosen": str(query["exerciseId"] or ""),
        "unit": ctx.caller.company.load_unit,
    }


async def _load_names(
    ctx: Context, records: Sequence[PersonalRecord], maxes: Sequence[TrainingMax], chosen: ObjectId | None
) -> dict[ObjectId, str]:
    """The names of the exercises with a record or a maximum, and of the chosen one."""
    names = {record["exerciseId"]: record["exerciseName"] for record in records}
    others = {each["exerciseId"] for each in maxes} | ({chosen} if chosen else set())
    loaded = await exercises.load_names(ctx, others - names.keys())
    return names | {key: exercise["name"] for key, exercise in loaded.items()}


@pages.post("/records", access=coach(CUSTOMERS.EDIT), form=_TrainingMaxForm(), on=records_page)
async def set_training_max(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Set or remove the training maximum of an exercise."""
    await training_maxes.set_training_max(ctx, customer_id, form["exerciseId"], form["value"])
    return Redirect(customer_path(customer_id, "/records"), "Changes saved.")
