"""Values that were read a short time ago."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentValues(Generic[K, V]):
    """Values by key, each for some seconds after it was read; for few keys, as none is removed before `clear`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._values: dict[K, tuple[float, V]] = {}

    def put(self, key: K, value: V) -> None:
        """Store a value that has just been read."""
        self._values[key] = (time.monotonic(), value)

    def select(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of the keys that were read recently."""
        oldest = time.monotonic() - self._seconds
        entries = {key: entry for key in keys if (entry := self._values.get(key)) is not None}
        return {key: value for key, (at, value) in entries.items() if at >= oldest}

    def clear(self) -> None:
        """Remove all values: they have changed."""
        self._values.clear()
