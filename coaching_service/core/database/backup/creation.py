"""Making a backup in a folder of its own: a compressed file for each collection, and a manifest."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from coaching_service.core.database.backup.manifest import (
    BackupError,
    CollectionContent,
    Manifest,
    Report,
    split_documents,
    verify,
    write_manifest,
)
from coaching_service.core.database.backup.reading import read_moment
from coaching_service.core.database.backup.stores import synchronize
from coaching_service.core.database.context import Services
from coaching_service.core.temporary_files import NO_SPACE

_COMPRESSION = 3


async def create_backup(services: Services, folder: Path, report: Report) -> Manifest:
    """Write a backup to the new folder `folder`, and return its manifest.

    It is written under a temporary name, read again and compared, and renamed when it is complete. `report` is called
    for each document that was written and that was read again. Raises BackupError if the folder exists, there is no
    space for it, or the database no longer has the moment that the backup shows.
    """
    draft = _create_draft(folder)
    try:
        manifest = await read_moment(services, partial(_write_collection, draft, report))
        synchronize(write_manifest(draft, manifest))
        verify(draft, manifest, report)
        synchronize(draft)
        draft.rename(folder)
        synchronize(folder.parent)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise BackupError(
            f"There is no space for the backup in {folder.parent}: free some, or choose another disk"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _create_draft(folder: Path) -> Path:
    """Create the folder in which a backup is written until it is complete, readable by its owner alone."""
    if folder.exists():
        raise BackupError(f"{folder} exists: choose a new folder for each backup")
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft.mkdir(mode=0o700)
    return draft


class _HashingFile:
    """A file that is hashed as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


async def _write_collection(
    folder: Path, report: Report, name: str, batches: AsyncIterator[bytes]
) -> CollectionContent:
    file, documents, size = folder / f"{name}.bson.gz", 0, 0
    with file.open("xb") as raw:
        hashing: Any = _HashingFile(raw)
        with gzip.GzipFile("", "wb", _COMPRESSION, hashing, mtime=0) as compressed:
            async for batch in batches:
                compressed.write(batch)
                count = sum(1 for _ in split_documents(batch))
                documents, size = documents + count, size + len(batch)
                report(count)
    synchronize(file)
    return {"file": file.name, "sha256": hashing.digest.hexdigest(), "documents": documents, "bytes": size}
