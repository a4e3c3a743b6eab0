"""A client's personal records and training maximums."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import page_document, skip_of
from coaching_service.core.text import normalize, straighten
from coaching_service.core.validation import Number
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity.record_types import RECORD_NAMES
from coaching_service.progress.exercise_history import lift_progress
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.training_maxes.models import TrainingMax
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.training.workouts.sets.models import MAX_LOAD
from coaching_service.training.workouts.sets.records import unit_of
from coaching_service.web import charts
from coaching_service.web.formatting import best_records, format_date, format_record_value, name_options
from coaching_service.web.page_queries import Search, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, load_header
from coaching_service.web.views.train.lift_words import main_points
from coaching_service.web.views.unusual_values import Confirmation, require_confirmed_loads

pages = Pages("/app/customers/{customerId}")
_LIFTS_PER_PAGE = 24
_TREND = timedelta(weeks=52)


class _RecordsQuery(Search):
    exerciseId: ObjectId | None


class LiftCard(TypedDict):
    """The records of an exercise, the best of each type; `trend` is a small chart of the last year."""

    _id: ObjectId
    name: str
    records: list[PersonalRecord]
    date: str
    trend: Markup | None


class _TrainingMaxForm(Confirmation):
    exerciseId: ObjectId
    value: Annotated[float | None, Number(minimum=0, maximum=MAX_LOAD)]


class _NamedMax(TypedDict):
    """A training maximum with the name of its exercise."""

    exerciseName: str
    value: float | None
    updatedAt: datetime


@pages.get("/records", access=coach(CUSTOMERS.VIEW), query=_RecordsQuery, template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId, query: _RecordsQuery) -> dict[str, Any]:
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
    matching = _by_exercise(records, query["keywords"])
    first = skip_of(query["page"], _LIFTS_PER_PAGE)
    shown = matching[first : first + _LIFTS_PER_PAGE]
    today = ctx.caller.today(customer["timezone"])
    results = await lift_progress.list_results(
        ctx, customer_id, [lift[0]["exerciseId"] for lift in shown], str(today - _TREND), str(today)
    )
    lifts = [_describe_lift(lift, results[lift[0]["exerciseId"]], ctx.caller.company.load_unit) for lift in shown]
    return {
        "customer": customer,
        "page": page_document(lifts, len(matching), query["page"], _LIFTS_PER_PAGE),
        "page_url": list_url(customer_path(customer_id, "/records"), {"keywords": query["keywords"]}),
        "keywords": query["keywords"],
        "maxes": sorted(named, key=lambda each: each["exerciseName"].casefold()),
        "exercises": name_options(names),
        "chosen": str(query["exerciseId"] or ""),
        "unit": ctx.caller.company.load_unit,
    }


def _by_exercise(records: Sequence[PersonalRecord], keywords: str) -> list[list[PersonalRecord]]:
    """Return the best record of each type, by exercise with every keyword in its name, the latest first."""
    words = straighten(normalize(keywords)).split()
    by_exercise: dict[ObjectId, list[PersonalRecord]] = {}
    for record in records:
        if all(word in straighten(normalize(record["exerciseName"])) for word in words):
            by_exercise.setdefault(record["exerciseId"], []).append(record)
    return sorted(map(best_records, by_exercise.values()), key=_latest_date, reverse=True)


def _latest_date(lift: Sequence[PersonalRecord]) -> str:
    return max(record["date"] for record in lift)


def _describe_lift(records: list[PersonalRecord], results: Sequence[LiftResult], unit: str) -> LiftCard:
    return {
        "_id": records[0]["exerciseId"],
        "name": records[0]["exerciseName"],
        "records": records,
        "date": _latest_date(records),
        "trend": _draw_trend(results, unit),
    }


def _draw_trend(results: Sequence[LiftResult], unit: str) -> Markup | None:
    """Return a chart of the value that says most about an exercise, whose name has the first and the last value."""
    record_type, points = main_points(results)
    if len(points) < 2:
        return None
    first, last = (
        f"{format_record_value(record_type, round(value, 1), unit_of(record_type) or unit)} on {format_date(date)}"
        for date, value in (points[0], points[-1])
    )
    return charts.sparkline(points, f"{RECORD_NAMES[record_type]} in the last year: from {first} to {last}")


async def _load_names(
    ctx: Context, records: Sequence[PersonalRecord], maxes: Sequence[TrainingMax], chosen: ObjectId | None
) -> dict[ObjectId, str]:
    """Return the names of the exercises with a record or a maximum, and of the chosen one."""
    names = {record["exerciseId"]: record["exerciseName"] for record in records}
    others = {each["exerciseId"] for each in maxes} | ({chosen} if chosen else set())
    loaded = await exercises.get_names(ctx, others - names.keys())
    return names | {key: exercise["name"] for key, exercise in loaded.items()}


@pages.post("/records", access=coach(CUSTOMERS.EDIT), form=_TrainingMaxForm, on=records_page)
async def set_training_max(ctx: Context, customer_id: ObjectId, form: _TrainingMaxForm) -> Redirect:
    """Set or remove the training maximum of an exercise."""
    maxes = await training_maxes.list_training_maxes(ctx, customer_id)
    known = [each["value"] for each in maxes if each["exerciseId"] == form["exerciseId"]]
    require_confirmed_loads(ctx, {"value": form["value"]}, known, confirmed=form["confirmed"])
    await training_maxes.set_training_max(ctx, customer_id, form["exerciseId"], form["value"])
    return Redirect(customer_path(customer_id, "/records"), "Changes saved.")
