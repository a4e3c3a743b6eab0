"""What a client has done, drawn: metrics, workload, muscle volume and compliance."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier, Input, Number
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricSet
from coaching_service.progress.compliance import service as compliance
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.schemas import MetricsSetReference
from coaching_service.progress.volume import service as volume
from coaching_service.progress.workload import service as workload
from coaching_service.web import charts
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer import head, require_likely

pages = Pages("/app/customers/{customerId}")
SPANS = {"4": "4 weeks", "12": "12 weeks", "26": "26 weeks", "52": "A year"}
_MEANINGS = {
    "done": "all done",
    "part": "partly done",
    "missed": "not done",
    "ahead": "planned",
    "none": "nothing planned",
}


class _Span(Input):
    weeks = Choice(*SPANS, load_default="12")


class _NewValue(Input):
    metricsSetId = Identifier(required=True)
    metricId = Identifier(required=True)
    date = Date(required=True)
    value = Number(minimum=-1e12, required=True)


@pages.get("/progress", access=coach(CUSTOMERS.VIEW), query=_Span(), template="customer/progress.html")
async def progress_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """How a client is doing."""
    customer = await head(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    weeks = int(query["weeks"])
    monday = today - timedelta(days=today.weekday() + 7 * (weeks - 1))
    span = (str(monday), str(today))
    load, muscles, kept, measured, sets = await gather_reads(
        ctx,
        workload.read_workload(ctx, customer_id, *span, "week"),
        volume.read_volume(ctx, customer_id, *span),
        compliance.between(ctx, customer_id, str(monday), str(monday + timedelta(days=7 * weeks - 1))),
        _measured(ctx, customer_id, span),
        _sets(ctx),
    )
    there, assigned = {each["_id"] for each in sets}, {each["_id"] for each in measured}
    return {
        "customer": customer,
        "weeks": query["weeks"],
        "spans": SPANS,
        "today": today,
        "workload": _workload(load),
        "muscles": _muscles(muscles),
        "compliance": _compliance(kept, str(today)),
        "measured": [each | {"isDeleted": each["_id"] not in there} for each in measured],
        "offered": [each for each in sets if each["_id"] not in assigned and METRICS.EDIT in ctx.caller.permissions],
    }


async def _sets(ctx: Context) -> list[MetricSet]:
    return await metric_sets.list_all(ctx) if METRICS.VIEW in ctx.caller.permissions else []


async def _measured(ctx: Context, customer_id: ObjectId, span: tuple[str, str]) -> list[Document]:
    """Every metric the client is assigned with what was recorded of it from a day to today, by set."""
    if METRICS.VIEW not in ctx.caller.permissions:
        return []
    sets = await metrics.assigned(ctx, customer_id)
    wanted = [(each["metricsSet"]["_id"], one["metric"]) for each in sets for one in each["metrics"]]
    histories = await gather_reads(ctx, *(metrics.history(ctx, customer_id, set_id, m["_id"]) for set_id, m in wanted))
    of_metric = {metric["_id"]: history for (_, metric), history in zip(wanted, histories, strict=True)}
    return [
        {
            "_id": each["metricsSet"]["_id"],
            "name": each["metricsSet"]["name"],
            "metrics": [_metric(one["metric"], of_metric[one["metric"]["_id"]], *span) for one in each["metrics"]],
        }
        for each in sets
    ]


def _metric(metric: Document, history: list[Document], since: str, today: str) -> Document:
    """A metric as it stands today: what is dated later is told apart, since it is likely a slip."""
    unit = metric["metricUnit"]["shortName"]
    known = [(entry["date"], entry["value"]) for entry in history if entry["date"] <= today]
    points = [point for point in known if point[0] >= since]
    return {
        "_id": metric["_id"],
        "name": metric["name"],
        "unit": unit,
        "latest": known[-1] if known else None,
        "change": points[-1][1] - points[0][1] if len(points) > 1 else None,
        "later": [entry for entry in history if entry["date"] > today],
        "chart": charts.lines(points, unit, f"{metric['name']} in {unit} by date") if points else None,
        "table": points,
    }


def _workload(load: Document) -> Document:
    unit, periods = load["loadUnit"], load["periods"]
    weeks = [(charts.short(period["date"]), period["volumeLoad"]) for period in periods]
    sets = [(charts.short(period["date"]), period["sets"]) for period in periods]
    busy = any(period["sessions"] for period in periods)
    return {
        "unit": unit,
        "periods": periods,
        "load": charts.bars(weeks, unit, f"Volume load in {unit} by week") if busy else None,
        "sets": charts.bars(sets, "sets", "Sets done by week") if busy else None,
        "sessions": sum(period["sessions"] for period in periods),
        "ratio": periods[-1]["acuteChronicRatio"] if periods else None,
    }


def _muscles(muscles: Document) -> Document:
    trained = sorted(muscles["muscleGroups"], key=lambda muscle: -muscle["sets"])
    trained = [muscle for muscle in trained if muscle["sets"]]
    values = [(muscle["name"], muscle["sets"]) for muscle in trained[:12]]
    return {
        "unit": muscles["loadUnit"],
        "trained": trained,
        "chart": charts.rows(values, "sets", "Sets by muscle") if values else None,
    }


def _compliance(kept: Document, today: str) -> Document:
    kinds = [(day["date"], _kind(day, today)) for day in kept["dailyCompliance"]]
    days = [(day, kind, _MEANINGS[kind]) for day, kind in kinds]
    weeks: dict[str, list[Document]] = {}
    for at, day in enumerate(kept["dailyCompliance"]):
        weeks.setdefault(kept["dailyCompliance"][at - at % 7]["date"], []).append(day)
    return {
        "rate": kept["workoutCompletionPercentage"],
        "total": sum(1 for _, kind in kinds if kind in ("done", "part", "missed")),
        "done": kept["completedWorkoutDays"],
        "chart": charts.heat(days, "Days by whether what was planned was done", today),
        "meanings": _MEANINGS,
        "weeks": [
            (monday, sum(day["isWorkoutDay"] for day in week), sum(day["isCompleted"] for day in week))
            for monday, week in weeks.items()
        ],
    }


def _kind(day: Document, today: str) -> str:
    if not day["isWorkoutDay"]:
        return "none"
    if day["isCompleted"]:
        return "done"
    if day["completedItems"]:
        return "part"
    return "ahead" if day["date"] >= today else "missed"


@pages.post("/progress", access=coach(METRICS.EDIT), form=_NewValue(), on=progress_page)
async def record_value(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Record a value of a metric; a second one of a date takes the place of the first."""
    await require_likely(ctx, customer_id, "date", form["date"])
    where = (form["metricsSetId"], form["metricId"])
    await metrics.record(ctx, customer_id, *where, form["date"], form["value"])
    return Redirect(f"/app/customers/{customer_id}/progress", "The value is recorded.")


@pages.post("/progress/sets", access=coach(METRICS.EDIT), form=MetricsSetReference(), on=progress_page)
async def assign_set(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Measure a metric set of a client from now on."""
    assigned = await metrics.assign(ctx, customer_id, form["metricsSetId"])
    return Redirect(
        f"/app/customers/{customer_id}/progress", f"{assigned['metricsSet']['name']} is measured from now on."
    )


@pages.get("/progress/sets/{metricsSetId}/end", access=coach(METRICS.EDIT), template="customer/end_set.html")
async def end_set_page(ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId) -> dict[str, Any]:
    """What follows from measuring a set no more."""
    customer, sets = await gather_reads(ctx, head(ctx, customer_id), metrics.assigned(ctx, customer_id))
    found = next((each["metricsSet"] for each in sets if each["metricsSet"]["_id"] == metrics_set_id), None)
    if found is None:
        raise NotFound("assignment")
    return {"customer": customer, "set": found}


@pages.post("/progress/sets/{metricsSetId}/end", access=coach(METRICS.EDIT), on=end_set_page)
async def end_set(ctx: Context, customer_id: ObjectId, metrics_set_id: ObjectId) -> Redirect:
    """Measure a set of a client no more; its values stay, and are back when it is assigned again."""
    await metrics.unassign(ctx, customer_id, metrics_set_id)
    return Redirect(
        f"/app/customers/{customer_id}/progress", "The set is not measured any more. What was recorded stays."
    )
