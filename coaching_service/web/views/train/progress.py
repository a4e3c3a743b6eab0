"""What a client has achieved: the exercises done with their records, measurements and photos."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypedDict

from markupsafe import Markup

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity.record_types import RECORD_NAMES
from coaching_service.progress.exercise_history import done_exercises, lift_progress
from coaching_service.progress.exercise_history.models import DoneExercise
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.web import charts
from coaching_service.web.page_queries import PageQuery, list_url
from coaching_service.web.pages import Pages
from coaching_service.web.views.train.layout import label_day
from coaching_service.web.views.train.lift_words import NamedRecord, describe_records, main_points, show_records
from coaching_service.web.views.train.photos import describe_photos

pages = Pages("/train/progress")
_LIFTS_PER_PAGE = 12
_TREND = timedelta(weeks=26)
_MAX_MEASUREMENTS = 4


class LiftCard(TypedDict):
    """An exercise that the client did; `trend` is a small chart. One that the company has deleted has no page."""

    _id: ObjectId
    name: str
    has_page: bool
    last_date: str
    sessions: int
    records: list[NamedRecord]
    trend: Markup | None


@pages.get("", access=customer(), query=PageQuery, template="train/progress.html")
async def progress_page(ctx: Context, query: PageQuery) -> dict[str, Any]:
    """The client's exercises, the one done latest first; the latest measurements and photos on the first page."""
    client_id, today = ctx.caller.id, ctx.caller.today()
    done, records, metric_sets, photos = await gather_reads(
        ctx,
        done_exercises.list_done_exercises(ctx, client_id, page=query["page"], size=_LIFTS_PER_PAGE),
        personal_records.list_records(ctx, client_id),
        metrics.list_measurements(ctx, client_id, str(today)),
        progress_photos.list_photos(ctx, client_id, page=1, size=1),
    )
    ids = [each["exercise"]["_id"] for each in done["docs"]]
    results, usable = await gather_reads(
        ctx,
        lift_progress.list_results(ctx, client_id, ids, str(today - _TREND), str(today)),
        exercises.get_usable_names(ctx, ids),
    )
    shown = show_records(ctx, records)
    measurements = [
        {"set_id": metric_set["_id"], **each}
        for metric_set in metric_sets
        for each in metric_set["measurements"]
        if each["latest"]
    ]
    return {
        "page": done,
        "lifts": [_describe_lift(each, shown, results[each["exercise"]["_id"]], usable) for each in done["docs"]],
        "has_metrics": any(metric_set["measurements"] for metric_set in metric_sets),
        "measurements": measurements[:_MAX_MEASUREMENTS],
        "photos": describe_photos(photos["docs"][0]) if photos["docs"] else None,
        "label_day": partial(label_day, today=today),
        "page_url": list_url(pages.prefix, {}),
    }


def _describe_lift(
    done: DoneExercise, records: Sequence[PersonalRecord], results: Sequence[LiftResult], usable: Any
) -> LiftCard:
    exercise_id, name = done["exercise"]["_id"], done["exercise"]["name"]
    record_type, points = main_points(results)
    label = f"{RECORD_NAMES[record_type]} in the last 6 months"
    return {
        "_id": exercise_id,
        "name": name,
        "has_page": exercise_id in usable,
        "last_date": done["lastDate"],
        "sessions": done["sessions"],
        "records": describe_records(record for record in records if record["exerciseId"] == exercise_id),
        "trend": charts.sparkline(points, label) if len(points) > 1 else None,
    }
