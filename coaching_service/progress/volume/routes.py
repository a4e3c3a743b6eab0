"""Muscle-group volume over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import DateRange
from coaching_service.progress.volume import models, schemas, service

routes = Routes("/coach/customers/{customerId}/musclegroups/volume", tag="Volume")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=DateRange(), returns=schemas.MuscleGroupVolume)
async def get_muscle_group_volume(ctx: Context, customer_id: ObjectId, query: dict[str, str]) -> models.Volume:
    """Read how much a client trained each muscle.

    Volume load is the sum of reps x load over completed sets that are not warm-up; a secondary muscle counts half.
    Sorted by number of sets, most first.
    """
    return await service.read_volume(ctx, customer_id, query["startDate"], query["endDate"])
