"""Temporary files of uploads and imports. What does not fit on their disk is refused, never stored in part."""

from __future__ import annotations

import errno
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import structlog

from coaching_service.core.errors import StorageFull, Unavailable

# A full disk, a used up quota, and the limit of file sizes (ulimit -f).
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

log = structlog.get_logger("coaching_service.temporary_files")


def open_temporary(purpose: str) -> IO[bytes]:
    """Return a new temporary file. It is unbuffered: the media worker shares its position."""
    return tempfile.TemporaryFile(buffering=0, prefix=f"coaching-{purpose}-")


def write_all(file: IO[bytes], content: bytes | bytearray) -> None:
    """Write `content` to an unbuffered file, which may take it in parts. Raises Unavailable if there is no space."""
    left = memoryview(content)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise no_space() from None


def no_space() -> Unavailable:
    """Log that there is no space for temporary files, and return the error of the request."""
    log.error("no space for temporary files", folder=tempfile.gettempdir())
    return Unavailable("There is no space for files at the moment; try again later")


# --- The space that is left on the disk of the embedded database ------------------------------------------------------


@dataclass(frozen=True)
class DiskSpace:
    """The disk of `folder`, on which `minimum` bytes are left free; 0: no limit, such as for a database elsewhere."""

    folder: Path = Path()
    minimum: int = 0

    def require(self) -> None:
        """Raise StorageFull while less is free: MongoDB ends when its disk is full."""
        if self.minimum and shutil.disk_usage(self.folder).free < self.minimum:
            raise StorageFull
