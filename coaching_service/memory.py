"""The memory of a process: what its imports and its start leave."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def without_collection() -> Iterator[None]:
    """Import modules without the garbage collector: it would examine their objects, which stay, again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def settle() -> None:
    """Let the garbage collector ignore what the start has created, and return free memory to the operating system.

    These objects live as long as the process. The start of a demo company frees pictures, which glibc keeps.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
