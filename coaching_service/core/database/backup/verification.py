"""Verifying what a store has of its backups, with the private key or without it, and without a database."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.backup.encryption import Decryption
from coaching_service.core.database.backup.manifest import BackupError, Manifest, Part, Report
from coaching_service.core.database.backup.parts import PartReader, named_parts
from coaching_service.core.database.backup.stored import StoredBackups, require_signature
from coaching_service.core.database.backup.stores import Store

_AT_ONCE = 4


@dataclass
class Verification:
    """What was read: the number of `parts` and their `size`, and what is wrong with backups, each a sentence.

    `decrypted` parts were compared with what was backed up; others with what was stored then, or, where the manifest of
    an earlier version does not say that, `unknown` ones with nothing. `unsigned` backups have a signature of a master
    key that was not given.
    """

    backups: int = 0
    parts: int = 0
    size: int = 0
    decrypted: int = 0
    unknown: int = 0
    unsigned: int = 0
    problems: list[str] = field(default_factory=list)


def verify_backups(
    store: Store, names: Sequence[str], decryption: Decryption, vault: Vault | None, report: Report
) -> Verification:
    """Read the manifests of backups, and each of their parts once.

    Raises BackupError if the store cannot be used, or if a private key is given that decrypts one of the backups not.
    """
    result = Verification(backups=len(names))
    manifests = _read_manifests(store, names, vault, result)
    if decryption.has_keys:
        for manifest in manifests:
            decryption.require(manifest.get("recipients", ()))
    parts = {
        name: (part, manifest.get("recipients", [])) for manifest in manifests for name, part in named_parts(manifest)
    }
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for part, size, problem in threads.map(lambda name: _compare(store, name, *parts[name], decryption), parts):
            result.parts, result.size = result.parts + 1, result.size + size
            if problem is not None:
                result.problems.append(problem)
            elif decryption.can_decrypt(parts[part][1]):
                result.decrypted += 1
            elif "stored" not in parts[part][0]:
                result.unknown += 1
            report(parts[part][0]["documents"])
    return result


def _read_manifests(store: Store, names: Sequence[str], vault: Vault | None, result: Verification) -> list[Manifest]:
    manifests: list[Manifest] = []
    for name in names:
        try:
            manifest = StoredBackups(store).read(name)
            if vault is None or not set(vault.fingerprints) & set(manifest["keyFingerprints"]):
                result.unsigned += 1
            else:
                require_signature(manifest, vault)
        except BackupError as error:
            result.problems.append(f"{name}: {error}")
        else:
            manifests.append(manifest)
    return manifests


def _compare(
    store: Store, name: str, part: Part, recipients: Sequence[str], decryption: Decryption
) -> tuple[str, int, str | None]:
    """Read a part; returns its name, how many bytes the store has, and what is wrong with it."""
    reader = PartReader(store, decryption, recipients)
    try:
        data = store.read(name)
        reader.compare(name, data, part)
    except BackupError as error:
        return name, 0, str(error)
    return name, len(data), None
