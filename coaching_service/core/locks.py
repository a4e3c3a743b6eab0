"""Locks by key within this process, and the order in which requests wait: lock, slot, transaction.

Those who write the same documents wait for a lock instead of repeating transactions. A transaction that waited for a
lock, or for a slot, would wait for requests that may be waiting for what it has written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

_in_transaction: ContextVar[bool] = ContextVar("in_transaction", default=False)


class KeyedLocks:
    """One lock for each key that is in use. Transactions of other processes do not wait."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def lock_of(self, key: Hashable) -> asyncio.Lock:
        """Return the lock of `key`, which exists as long as any caller refers to it."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock


def require_no_transaction() -> None:
    """Raise RuntimeError within a transaction, where nothing may wait for a lock or a slot."""
    if _in_transaction.get():
        raise RuntimeError("a lock or slot is acquired before the transaction, never inside it")


@contextmanager
def within_transaction() -> Iterator[None]:
    """Run a transaction, in which `require_no_transaction` raises."""
    token = _in_transaction.set(True)
    try:
        yield
    finally:
        _in_transaction.reset(token)
