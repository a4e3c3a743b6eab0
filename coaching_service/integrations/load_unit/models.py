"""The conversion of a company's loads as it is sent."""

from __future__ import annotations

from typing import Literal, TypedDict


class NewConversion(TypedDict):
    """The unit that all loads are converted to; `dryRun`: only count them."""

    loadUnit: Literal["kg", "lb"]
    dryRun: bool
