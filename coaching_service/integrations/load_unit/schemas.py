"""Requests of the conversion of loads."""

from __future__ import annotations

from coaching_service.core.validation import Boolean, Choice, Input


class LoadUnitConversion(Input):
    """The unit that all loads are converted to."""

    loadUnit = Choice("kg", "lb", required=True, metadata={"description": "The new unit of all loads."})
    dryRun = Boolean(load_default=False, metadata={"description": "Whether to count what would be converted only."})
