"""Importing the service, which takes most of the time of a start."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Import modules without the garbage collector: it would examine their objects, which stay, again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
