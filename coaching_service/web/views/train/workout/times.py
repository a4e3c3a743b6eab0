"""How long a workout took, by the times of its sets."""

from __future__ import annotations

from datetime import datetime
from math import ceil

from coaching_service.training.workouts.blocks.models import Block

_LONGEST = 360  # minutes; sets that are further apart were not logged while training


def measure_minutes(block: Block) -> int | None:
    """Return the minutes from the first to the last logged set; None with fewer than two, or if it is too long."""
    times: list[datetime] = [
        logged["loggedAt"]
        for item in block["items"]
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
        for logged in item["customerSets"]
        if logged["isCompleted"] and "loggedAt" in logged
    ]
    if len(times) < 2:
        return None
    minutes = ceil((max(times) - min(times)).total_seconds() / 60)
    return minutes if 0 < minutes <= _LONGEST else None
