"""The conversion of a company's loads as it is sent."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.fields import Default, Description
from coaching_service.people.account.models import LoadUnit


class LoadUnitConversion(TypedDict):
    """The unit that all loads are converted to."""

    loadUnit: Annotated[LoadUnit, Description("The new unit of all loads.")]
    dryRun: Annotated[bool, Default(False), Description("Whether to count what would be converted only.")]
