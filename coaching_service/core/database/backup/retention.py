"""Which backups of a store remain, and deleting the others with the parts that no backup needs any more."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from coaching_service.core.database.backup.manifest import BackupError
from coaching_service.core.database.backup.parts import OBJECTS, part_names
from coaching_service.core.database.backup.stored import StoredBackups, time_of
from coaching_service.core.database.backup.stores import Store

_IN_USE = timedelta(days=1)  # a part that is younger may belong to a backup of another database that is being made


@dataclass(frozen=True)
class Retention:
    """How many days and weeks that have backups retain their newest one."""

    daily: int
    weekly: int

    def select(self, names: Iterable[str]) -> set[str]:
        """Return which of the backups with these names remain."""
        newest_first = sorted(names, reverse=True)
        return {
            *_newest_of_each(newest_first, self.daily, lambda time: time.date()),
            *_newest_of_each(newest_first, self.weekly, lambda time: time.isocalendar()[:2]),
        }


def _newest_of_each(newest_first: Iterable[str], periods: int, period_of: Callable[[datetime], Hashable]) -> list[str]:
    newest: dict[Hashable, str] = {}
    for name in newest_first:
        newest.setdefault(period_of(time_of(name)), name)
    return list(newest.values())[:periods]


def prune(store: Store, retention: Retention) -> tuple[int, int]:
    """Delete the backups that are not retained, then unused parts; returns how many of both.

    Nothing is deleted if the manifest of a backup that remains cannot be read. Raises BackupError then.
    """
    backups = StoredBackups(store)
    names = backups.list_names()
    remaining = retention.select(names)
    if not remaining:
        raise BackupError(f"{store.location} would have no backup left")
    used = {name for backup in remaining for name in part_names(backups.read(backup))}
    outdated = [name for name in names if name not in remaining]
    backups.delete(outdated)
    limit = datetime.now(UTC) - _IN_USE
    unused = [each.name for each in store.iterate(OBJECTS) if each.name not in used and each.written_at < limit]
    store.delete(unused)
    return len(outdated), len(unused)
