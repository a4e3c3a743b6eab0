"""Loads in decimal arithmetic: rounding to the steps of a gym's plates, and percentages of a maximum."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

# The smallest usual difference between two loads, by unit.
STEPS = {"kg": Decimal("2.5"), "lb": Decimal(5)}


def round_to_step(load: Decimal, step: Decimal) -> Decimal:
    """Return the multiple of `step` nearest to `load`, half up, in the same unit."""
    return (load / step).quantize(Decimal(1), ROUND_HALF_UP) * step


def percent_of(maximum: float, percent: float, load_unit: str) -> float:
    """Return a percentage of a maximum in `load_unit` (`kg` or `lb`), to the nearest 2.5 kg or 5 lb, half up."""
    load = Decimal(str(maximum)) * Decimal(str(percent)) / 100
    return float(round_to_step(load, STEPS[load_unit]))
