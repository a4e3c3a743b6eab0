"""The space that is left on the disk of the embedded database."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from coaching_service.core.errors import StorageFull


@dataclass(frozen=True)
class DiskSpace:
    """The disk of `folder`, on which `minimum` bytes are left free; 0: no limit, such as for a database elsewhere."""

    folder: Path = Path()
    minimum: int = 0

    def require(self) -> None:
        """Raise StorageFull while less is free: MongoDB ends when its disk is full."""
        if self.minimum and shutil.disk_usage(self.folder).free < self.minimum:
            raise StorageFull
