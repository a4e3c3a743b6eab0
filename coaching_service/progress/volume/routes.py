"""Muscle-group volume over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period, SearchedRange
from coaching_service.progress.volume import service
from coaching_service.progress.volume.models import MuscleGroupVolume

routes = Routes("/coach/customers/{customerId}/musclegroups/volume", tag="Volume")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=SearchedRange())
async def get_muscle_group_volume(ctx: Context, customer_id: ObjectId, query: Period) -> MuscleGroupVolume:
    """Read how much a client trained each muscle.

    Volume load is the sum of reps x load over completed sets that are not warm-up; a secondary muscle counts half.
    Sorted by number of sets, most first.
    """
    return await service.get_volume(ctx, customer_id, query["startDate"], query["endDate"])
