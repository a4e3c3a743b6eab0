"""The backups of a store: their names, which are times, their signed manifests, and which of them remain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from coaching_service.core.auth import Vault
from coaching_service.core.database.backup import manifest as backup_manifest
from coaching_service.core.database.backup.parts import OBJECTS, part_names
from coaching_service.core.database.backup.stores import Store

_FOLDER = "backups"
_IN_USE = timedelta(days=1)  # a part that is younger may belong to a backup of another database that is being made
_NAME = "%Y-%m-%dT%H%M%SZ"


def time_of(name: str) -> datetime:
    """Return the time that is the name of a backup."""
    return datetime.strptime(name, _NAME).replace(tzinfo=UTC)


def _is_name(text: str) -> bool:
    try:
        time_of(text)
    except ValueError:
        return False
    return True


class StoredBackups:
    """The complete backups of a store: a backup has a manifest when all its parts are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def list_names(self) -> list[str]:
        """Return the names of all backups, oldest first."""
        files = (each.name.removeprefix(f"{_FOLDER}/") for each in self._store.iterate(_FOLDER))
        return sorted(name for file in files if _is_name(name := file.removesuffix(".json")))

    def find(self, name: str | None) -> str:
        """Return the name of the newest backup, or `name` if there is such a backup. Raises BackupError."""
        names = self.list_names()
        if not names:
            raise backup_manifest.BackupError(f"{self._store.location} has no backup")
        if name is not None and name not in names:
            raise backup_manifest.BackupError(f"{self._store.location} has no backup {name}; the newest is {names[-1]}")
        return name or names[-1]

    def read(self, name: str) -> backup_manifest.Manifest:
        """Return the manifest of a backup. Raises BackupError if it is damaged."""
        return backup_manifest.parse_manifest(self._store.read(_file(name)), f"{self._store.location}/{_file(name)}")

    def read_newest(self) -> backup_manifest.Manifest | None:
        """Return the manifest of the newest backup; None if there is none, or it is damaged."""
        names = self.list_names()
        try:
            return self.read(names[-1]) if names else None
        except backup_manifest.BackupError:
            return None

    def write(self, manifest: backup_manifest.Manifest, vault: Vault) -> str:
        """Store a signed manifest, and return the name of the backup."""
        name = datetime.fromisoformat(manifest["createdAt"]).strftime(_NAME)
        manifest["signature"] = vault.sign(backup_manifest.text_to_sign(manifest))
        self._store.write(_file(name), backup_manifest.format_manifest(manifest).encode())
        return name

    def delete(self, names: Collection[str]) -> None:
        """Delete the manifests of backups: their parts remain."""
        self._store.delete([_file(name) for name in names])


def require_signature(manifest: backup_manifest.Manifest, vault: Vault) -> None:
    """Raise BackupError if a manifest was not made by a service with one of these master keys, or was changed."""
    if not vault.verify_signature(backup_manifest.text_to_sign(manifest), manifest.get("signature", "")):
        raise backup_manifest.BackupError(
            "The manifest of the backup was changed, or was not made by this service: do not restore it"
        )


def _file(name: str) -> str:
    return f"{_FOLDER}/{name}.json"


# --- Retention --------------------------------------------------------------------------------------------------------


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
        raise backup_manifest.BackupError(f"{store.location} would have no backup left")
    used = {name for backup in remaining for name in part_names(backups.read(backup))}
    outdated = [name for name in names if name not in remaining]
    backups.delete(outdated)
    limit = datetime.now(UTC) - _IN_USE
    unused = [each.name for each in store.iterate(OBJECTS) if each.name not in used and each.written_at < limit]
    store.delete(unused)
    return len(outdated), len(unused)
