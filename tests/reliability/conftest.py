"""Services that are started, and ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.service_process import Service


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service for a story that starts and ends it as it likes; its folder does not exist yet."""
    instance = Service(tmp_path / "data")
    try:
        yield instance
    finally:
        await instance.clean_up()
