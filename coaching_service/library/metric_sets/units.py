"""The units metrics are recorded in, the same for every company."""

from __future__ import annotations

from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId, stable_id

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

UNITS: dict[ObjectId, Document] = {
    stable_id("metric unit", name): {"_id": stable_id("metric unit", name), "name": name, "shortName": short}
    for name, short in _UNITS
}


def unit_named(short: str) -> ObjectId:
    """The identifier of the unit with this short name. Raises KeyError."""
    found = {unit["shortName"]: identifier for identifier, unit in UNITS.items()}
    return found[short]
