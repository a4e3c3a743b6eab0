"""Converting loads to another unit: what the features that store or show loads have in common."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

Convert = Callable[[float], float]
LOAD_UNITS = ("kg", "lb")
_KG_PER_LB = Decimal("0.45359237")  # the international pound


class Conversion(NamedTuple):
    """How loads are converted to `load_unit`, and whether the result is stored or only counted."""

    convert: Convert
    load_unit: str
    is_stored: bool


class LoadCount(NamedTuple):
    """How many documents with loads there are, and how many loads."""

    documents: int = 0
    loads: int = 0


def convert_load(load: Decimal, unit: str, target: str, step: Decimal = Decimal("0.01")) -> Decimal:
    """Return a load in kg or lb in the target unit, rounded half up to `step` if it has to be converted."""
    if unit == target:
        return load
    converted = load * _KG_PER_LB if target == "kg" else load / _KG_PER_LB
    return converted.quantize(step, ROUND_HALF_UP)


def convert_stored_load(load: float, unit: str, target: str) -> float:
    """Return a stored load in the target unit, rounded half up to 0.1 if it has to be converted."""
    return float(convert_load(Decimal(str(load)), unit, target, Decimal("0.1")))


def convert_entered_load(load: float, unit: str, target: str) -> float:
    """Return a load that a user entered in the unit in which it is stored, rounded half up to 0.01 if it is another."""
    return float(convert_load(Decimal(str(load)), unit, target))
