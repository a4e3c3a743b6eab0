"""A plugin of pytest: the garbage collector ignores what imports and collection create, which lives as long as the run."""

from __future__ import annotations

import gc

import pytest

gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage from now on, less often than by default."""
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)
    gc.enable()
