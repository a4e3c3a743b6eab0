"""Whether a company has any load, in whose unit it would have to stay."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.people.account import service as account
from coaching_service.people.account.events import LoadUnitChanged
from coaching_service.progress.personal_records import load_conversion as records
from coaching_service.training.templates import load_conversion as templates
from coaching_service.training.training_maxes import load_conversion as training_maxes
from coaching_service.training.workouts import load_conversion as workouts


async def require_no_loads(ctx: Context, _: LoadUnitChanged) -> None:
    """Raise Conflict if any load is stored, in the transaction that changes the unit."""
    for has_loads in (workouts.has_loads, templates.has_loads, records.has_loads, training_maxes.has_loads):
        if await has_loads(ctx):
            raise account.load_unit_locked()
