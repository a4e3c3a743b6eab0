"""The units in which metrics are recorded; they are the same for every company."""

from __future__ import annotations

from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.library.metric_sets.models import MetricUnit

_UNITS = (
    ("Kilograms", "kg"),
    ("Pounds", "lb"),
    ("Centimeters", "cm"),
    ("Inches", "in"),
    ("Meters", "m"),
    ("Kilometers", "km"),
    ("Miles", "mi"),
    ("Percent", "%"),
    ("Count", "count"),
    ("Score", "score"),
    ("Steps", "steps"),
    ("Seconds", "s"),
    ("Minutes", "min"),
    ("Hours", "h"),
    ("Beats per minute", "bpm"),
    ("Milliseconds", "ms"),
    ("Millimeters of mercury", "mmHg"),
    ("Degrees Celsius", "°C"),
    ("Kilocalories", "kcal"),
    ("Grams", "g"),
    ("Milliliters", "ml"),
    ("Liters", "l"),
    ("Watts", "W"),
    ("Milliliters per kilogram and minute", "ml/kg/min"),
    ("Millimoles per liter", "mmol/l"),
    ("Milligrams per deciliter", "mg/dl"),
)

UNITS: dict[ObjectId, MetricUnit] = {
    stable_id("metric unit", name): {"_id": stable_id("metric unit", name), "name": name, "shortName": short}
    for name, short in _UNITS
}


def unit_id(short_name: str) -> ObjectId:
    """Return the identifier of the unit with this short name. Raises KeyError."""
    ids = {unit["shortName"]: identifier for identifier, unit in UNITS.items()}
    return ids[short_name]
