"""Counts that are collected in memory and stored together, for statistics that may be lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping

from coaching_service.core.ids import ObjectId


class PendingCounts:
    """How often something of a company was used since the counts were stored; for any thread."""

    def __init__(self) -> None:
        self._counts: dict[ObjectId, Counter[ObjectId]] = {}
        self._taken: dict[ObjectId, Counter[ObjectId]] = {}
        self._lock = threading.Lock()

    def add(self, company_id: ObjectId, ids: Iterable[ObjectId]) -> None:
        """Count one more use of each."""
        with self._lock:
            self._counts.setdefault(company_id, Counter()).update(ids)

    def of(self, company_id: ObjectId) -> Mapping[ObjectId, int]:
        """Return the counts of a company that are not stored yet, or are being stored."""
        with self._lock:
            return self._counts.get(company_id, Counter()) + self._taken.get(company_id, Counter())

    def take(self) -> Mapping[ObjectId, Mapping[ObjectId, int]]:
        """Return the counts of all companies to store them, and begin again with none; `end_storing` forgets them."""
        with self._lock:
            self._taken, self._counts = self._counts, {}
            return self._taken

    def end_storing(self) -> None:
        """Forget the counts that were taken: they are stored, or lost."""
        with self._lock:
            self._taken = {}
