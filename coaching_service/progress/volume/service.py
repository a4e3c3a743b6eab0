"""Which muscles a client trained, and how much."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import readings, tallies

_SHARE = {"primary": 1.0, "secondary": 0.5}


async def by_muscle(ctx: Context, customer_id: ObjectId, first: str, last: str) -> Document:
    """Sets, reps and volume load of each muscle trained from `first` to `last`; a secondary muscle counts half.

    Raises NotFound, Forbidden.
    """
    _, totals = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), readings.exercise_totals(ctx, customer_id, first, last)
    )
    muscles = await exercises.trained_muscles(ctx, [total["_id"] for total in totals])
    trained: dict[ObjectId, Document] = {}
    for total in totals:
        for muscle in muscles.get(total["_id"], ()):
            found = trained.setdefault(
                muscle["_id"], {"_id": muscle["_id"], "name": muscle["name"], **dict.fromkeys(tallies.FIGURES, 0.0)}
            )
            for figure in tallies.FIGURES:
                found[figure] += total[figure] * _SHARE[muscle["role"]]
    for found in trained.values():
        found["volumeLoad"] = tallies.exact(found["volumeLoad"])
    return {
        "startDate": first,
        "endDate": last,
        "loadUnit": ctx.caller.company.load_unit,
        "muscleGroups": sorted(trained.values(), key=lambda muscle: (-muscle["sets"], muscle["name"])),
    }
