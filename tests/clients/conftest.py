"""The client libraries, generated once for all tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.clients.programs import ROOT, python_environment, run

LIBRARIES = ROOT / "clients"


@pytest.fixture(scope="session")
async def libraries() -> Path:
    """The folder of the client libraries, generated from the document of this source and type-checked, with packages."""
    await run(sys.executable, "scripts/build_clients.py", "--dist", "--python", await python_environment(), cwd=ROOT)
    return LIBRARIES
