"""Whether a company has any load, in whose unit it would have to stay."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.account.events import LoadUnitChanged
from coaching_service.people.customers import service as customers
from coaching_service.progress.personal_records import load_conversion as records
from coaching_service.training.templates import service as templates
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.workouts.blocks import load_conversion as workouts


async def require_no_loads(ctx: Context, _: LoadUnitChanged) -> None:
    """Raise Conflict if any load is stored, in the transaction that changes the unit.

    What is still stored of clients that have been deleted does not count: it is being erased.
    """
    if await templates.has_loads(ctx):
        raise account.load_unit_locked()
    deleted: list[ObjectId] = []
    for find_with_load in (workouts.find_with_load, records.find_with_load, training_maxes.find_with_load):
        while (owner := await find_with_load(ctx, deleted)) is not None:
            (customer_id,) = owner
            if customer_id is None or customer_id in await customers.find_references(ctx, [customer_id]):
                raise account.load_unit_locked()
            deleted.append(customer_id)
