"""Converting stored loads to another unit: what the features that store loads have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Convert = Callable[[float], float]


class Conversion(NamedTuple):
    """How loads are converted to `load_unit`, and whether the result is stored or only counted."""

    convert: Convert
    load_unit: str
    is_stored: bool


class LoadCount(NamedTuple):
    """How many documents with loads there are, and how many loads."""

    documents: int = 0
    loads: int = 0
