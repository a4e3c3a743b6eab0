"""How much a client trained each muscle."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.fields import Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period, SearchedRange
from coaching_service.core.validation import Choice
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.items import totals as training_load
from coaching_service.training.workouts.reports import exercises as exercise_queries

# --- Muscle-group volume as it is returned ----------------------------------------------------------------------------


class MuscleVolume(TypedDict):
    """The completed sets of a muscle without warm-up sets; as a secondary muscle they count half."""

    _id: ObjectId
    name: str
    sets: float
    reps: float
    volumeLoad: Annotated[float, Description("Sum of reps x load, in `loadUnit`.")]


class MuscleGroupVolume(Period):
    """How much each muscle was trained in a date range."""

    loadUnit: Annotated[str, Choice("kg", "lb")]
    muscleGroups: list[MuscleVolume]


_SHARE_OF_ROLE = {"primary": 1.0, "secondary": 0.5}


async def get_volume(ctx: Context, customer_id: ObjectId, start_date: str, end_date: str) -> MuscleGroupVolume:
    """Return the volume of each muscle trained between two dates, both included; a secondary muscle counts half.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    _, totals = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercise_queries.sum_by_exercise(ctx, customer_id, start_date, end_date),
    )
    muscles_of = await exercises.get_trained_muscles(ctx, [total["_id"] for total in totals])
    volumes: dict[ObjectId, MuscleVolume] = {}
    for total in totals:
        for muscle in muscles_of.get(total["_id"], ()):
            share = _SHARE_OF_ROLE[muscle["role"]]
            volume = volumes.setdefault(
                muscle["_id"], {"_id": muscle["_id"], "name": muscle["name"], "sets": 0, "reps": 0, "volumeLoad": 0}
            )
            volume["sets"] += total["sets"] * share
            volume["reps"] += total["reps"] * share
            volume["volumeLoad"] += total["volumeLoad"] * share
    for volume in volumes.values():
        volume["volumeLoad"] = training_load.round_total(volume["volumeLoad"])
    return {
        "startDate": start_date,
        "endDate": end_date,
        "loadUnit": ctx.caller.company.load_unit,
        "muscleGroups": sorted(volumes.values(), key=lambda volume: (-volume["sets"], volume["name"])),
    }


# --- Muscle-group volume over REST ------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/musclegroups/volume", tag="Volume")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=SearchedRange())
async def get_muscle_group_volume(ctx: Context, customer_id: ObjectId, query: Period) -> MuscleGroupVolume:
    """Read how much a client trained each muscle.

    Volume load is the sum of reps x load over completed sets that are not warm-up; a secondary muscle counts half.
    Sorted by number of sets, most first.
    """
    return await get_volume(ctx, customer_id, query["startDate"], query["endDate"])
