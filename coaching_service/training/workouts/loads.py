"""Loads in decimal arithmetic: rounding to the steps of a gym's plates, and percentages of a maximum."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

_KG_PER_LB = Decimal("0.45359237")  # the international pound
# The smallest usual difference between two loads, by unit.
STEPS = {"kg": Decimal("2.5"), "lb": Decimal(5)}


def round_to_step(load: Decimal, step: Decimal) -> Decimal:
    """Return the multiple of `step` nearest to `load`, half up, in the same unit."""
    return (load / step).quantize(Decimal(1), ROUND_HALF_UP) * step


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


def percent_of(maximum: float, percent: float, load_unit: str) -> float:
    """Return a percentage of a maximum in `load_unit` (`kg` or `lb`), to the nearest 2.5 kg or 5 lb, half up."""
    load = Decimal(str(maximum)) * Decimal(str(percent)) / 100
    return float(round_to_step(load, STEPS[load_unit]))
