"""Words for kinds of sets, and for rows that are no sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

SetKind = Literal["normal", "warmup", "drop", "failure"]

KINDS: Mapping[str, SetKind] = {
    "": "normal",
    "normal": "normal",
    "working": "normal",
    "work": "normal",
    "w": "warmup",
    "warmup": "warmup",
    "warm up": "warmup",
    "warm-up": "warmup",
    "calentamiento": "warmup",
    "aufwarmen": "warmup",
    "d": "drop",
    "drop": "drop",
    "dropset": "drop",
    "drop set": "drop",
    "f": "failure",
    "failure": "failure",
    "fallo": "failure",
}
# Rows between sets.
NOT_SETS = ("rest timer", "rest", "note", "descanso", "ruhetimer", "timer")
