"""Where backups are stored under names: a folder, or a bucket of S3-compatible storage."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Protocol, Self

from coaching_service.core.temporary_files import NO_SPACE

BUCKET = "s3://"
FILE = "manifest.json"  # in a folder that is one backup, as versions before 0.3 wrote it
_DRAFT_SECONDS = 24 * 60 * 60
_NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EMFILE)


class BackupError(Exception):
    """A backup cannot be made or restored; the message is one sentence that says why."""


@dataclass(frozen=True)
class StoredFile:
    """A stored file: its name, such as `backups/2026-11-23T031500Z.json`, its bytes, and when it was written."""

    name: str
    size: int
    written_at: datetime


class Store(Protocol):
    """Files under names with slashes. Every method may wait for a network, and raises BackupError if it is refused."""

    location: str

    def iterate(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files of a folder and its folders."""

    def read(self, name: str) -> bytes:
        """Return a file. Raises BackupError if there is none."""

    def write(self, name: str, data: bytes) -> None:
        """Store a file, in place of one of the same name; it is complete, or not there."""

    def delete(self, names: Collection[str]) -> None:
        """Delete files; files that are gone are ignored."""

    def clean(self) -> None:
        """Remove what writers that were killed have left; call it before others of this process write."""


def open_store(location: str) -> Store:
    """Return the store at `s3://bucket/prefix`, or in a folder. Raises BackupError if a package for it is missing."""
    if not location.startswith(BUCKET):
        return FolderStore(Path(location))
    try:
        from coaching_service.installation.backup.bucket import BucketStore
    except ModuleNotFoundError:
        raise missing_extra() from None
    return BucketStore(location)


def is_own_folder(source: str) -> bool:
    """Return whether `source` is a folder of an earlier version, or can be no store: neither a bucket nor a folder."""
    folder = Path(source)
    return not source.startswith(BUCKET) and ((folder / FILE).exists() or not (folder / "backups").is_dir())


def missing_extra() -> BackupError:
    """Return the error for an installation that cannot encrypt backups, or use a bucket."""
    return BackupError(
        "Buckets and encrypted backups need packages that are not installed: pip install 'coaching-service[backup]'"
    )


def own_end() -> str:
    """Return how names of drafts of this process end, which begin with a dot."""
    return f".{socket.gethostname()}.{os.getpid()}.partial"


def remove_drafts(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder and its folders.

    Call it before this process writes. One of another machine may still be writing: its drafts are removed after a day.
    """
    for draft in folder.rglob(".*.partial"):
        *_, process, _ = draft.name.rsplit(".", 2)
        is_of_machine = draft.name.endswith(f".{socket.gethostname()}.{process}.partial")
        is_running = Path(f"/proc/{process}").exists() and not draft.name.endswith(own_end())
        with suppress(FileNotFoundError):  # another process removes them too
            if (is_of_machine and not is_running) or draft.stat().st_mtime < time.time() - _DRAFT_SECONDS:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


class FolderStore:
    """A folder, readable by its owner alone; it is created with the first file."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.location = folder, str(folder)

    def iterate(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files of a folder and its folders, but none that are being written."""
        for file in (self._folder / folder).rglob("[!.]*"):
            if file.is_file():
                facts = file.stat()
                written_at = datetime.fromtimestamp(facts.st_mtime, UTC)
                yield StoredFile(file.relative_to(self._folder).as_posix(), facts.st_size, written_at)

    def read(self, name: str) -> bytes:
        """Return a file. Raises BackupError if there is none."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            raise BackupError(f"{self._folder / name} is missing") from None

    def write(self, name: str, data: bytes) -> None:
        """Store a file; it appears when it is on the disk. Raises BackupError if there is no space."""
        with _no_space_means(f"There is no space for the backup in {self.location}"):
            self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        target = self._folder / name
        self._create(target.parent)
        with NamedTemporaryFile(dir=target.parent, prefix=".", suffix=own_end(), delete=False) as draft:
            try:
                draft.write(data)
                draft.flush()
                os.fsync(draft.fileno())
                Path(draft.name).replace(target)
            finally:
                Path(draft.name).unlink(missing_ok=True)
        synchronize(target.parent)

    def delete(self, names: Collection[str]) -> None:
        """Delete files; files that are gone are ignored."""
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove what writers that were killed have left; call it before others of this process write."""
        remove_drafts(self._folder)

    def _create(self, folder: Path) -> None:
        if folder.is_dir():
            return
        if folder != self._folder:
            self._create(folder.parent)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class NewFolder(FolderStore):
    """A folder of one backup, which appears when it is complete.

    Until then its files have no names, and disappear with the process, where the file system can do that (not on NFS)
    and as many files can be open; else they are in another folder, which the next backup removes.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.with_name(f".{folder.name}{own_end()}"))
        self._target, self.location = folder, str(folder)
        self._unnamed: dict[str, int] = {}

    def __enter__(self) -> Self:
        if self._target.exists():
            raise BackupError(f"{self._target} exists: choose a new folder for each backup")
        self._target.parent.mkdir(parents=True, exist_ok=True)
        remove_drafts(self._target.parent)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        return self

    def __exit__(self, *_: object) -> None:
        self.delete(list(self._unnamed))
        shutil.rmtree(self._folder, ignore_errors=True)

    def iterate(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files of a folder and its folders."""
        yield from super().iterate(folder)
        for name, descriptor in self._unnamed.items():
            if name.startswith(f"{folder}/"):
                yield StoredFile(name, os.fstat(descriptor).st_size, datetime.now(UTC))

    def read(self, name: str) -> bytes:
        """Return a file. Raises BackupError if there is none."""
        descriptor = self._unnamed.get(name)
        return super().read(name) if descriptor is None else os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def delete(self, names: Collection[str]) -> None:
        """Delete files; files that are gone are ignored."""
        for name in names:
            if (descriptor := self._unnamed.pop(name, None)) is not None:
                os.close(descriptor)
        super().delete(names)

    def complete(self) -> None:
        """Give the files their names in the folder, which appears with all of them."""
        with _no_space_means(f"There is no space for the backup in {self.location}"):
            for name, descriptor in self._unnamed.items():
                self._create((self._folder / name).parent)
                # With a descriptor of a folder the call follows the link in /proc.
                os.link(f"/proc/self/fd/{descriptor}", self._folder / name, src_dir_fd=descriptor)
            for each in (self._folder, *(each for each in self._folder.rglob("*") if each.is_dir())):
                synchronize(each)
            self._folder.rename(self._target)
            synchronize(self._target.parent)

    def _write(self, name: str, data: bytes) -> None:
        try:
            descriptor = os.open(self._target.parent, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in _NO_UNNAMED_FILES:
                raise
            super()._write(name, data)
            return
        self._unnamed[name] = descriptor
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.fsync(descriptor)


@contextmanager
def _no_space_means(message: str) -> Iterator[None]:
    """Raise BackupError with this message if the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise BackupError(message) from None


def synchronize(path: Path) -> None:
    """Write a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
