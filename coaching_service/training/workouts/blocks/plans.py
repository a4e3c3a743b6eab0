"""What a copy of a block takes from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from coaching_service.core.fields import take
from coaching_service.training.workouts.blocks.models import BlockPlan, PlannedBlock
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem


def plan_of(source: Mapping[str, Any], items: Sequence[ItemInput | WorkItem]) -> BlockPlan:
    """Return what is planned in a block, a template or a request, with these items and without a day."""
    return cast("BlockPlan", {"isRest": False, **take(PlannedBlock, source), "items": items})
