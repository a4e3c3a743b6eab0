"""Training maximums over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.training.training_maxes import service
from coaching_service.training.training_maxes.service import NewTrainingMax, TrainingMax

routes = Routes("/coach/customers/{customerId}/training-maxes", tag="Training maximums", locks="customer")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_training_maxes(ctx: Context, customer_id: ObjectId) -> list[TrainingMax]:
    """List a client's training maximums.

    Planned sets with `loadPercent` refer to them; for other exercises they refer to the estimated 1RM.
    """
    return await service.list_training_maxes(ctx, customer_id)


@routes.put("/{exerciseId}", access=coach(CUSTOMERS.EDIT), errors=(NotFound,), example={"value": 140})
async def set_training_max(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, body: NewTrainingMax
) -> TrainingMax:
    """Set a client's training maximum for an exercise.

    Loads that are planned in percent follow on the next read. null removes the training maximum.
    """
    return await service.set_training_max(ctx, customer_id, exercise_id, body["value"])
