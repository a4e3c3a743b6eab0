"""The processor time that a request may use: what a defect or a damaged document makes endless ends after it."""

from __future__ import annotations

import asyncio
import math
import time
import types
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from coaching_service.core.errors import Unavailable

T = TypeVar("T")
READ_SECONDS, WRITE_SECONDS = 10.0, 60.0
_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


class Budget:
    """What is left of the processor time of a request, in all tasks and threads that work for it."""

    __slots__ = ("_left",)

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def begin(self) -> None:
        """Be the budget of this task, of those that it starts, and of the threads that work for them."""
        _current.set(self)

    def end(self) -> None:
        """Spend no more: what is still to be sent, such as an export, takes as long as it takes."""
        self._left = math.inf

    def spend(self, seconds: float) -> None:
        """Subtract processor time."""
        self._left -= seconds

    def require(self, seconds: float = 0.0) -> None:
        """Raise Unavailable if more is spent than there was; `seconds` are still to be subtracted."""
        if self._left < seconds:
            raise Unavailable("The request takes too much processor time; ask for less at once")


def current() -> Budget | None:
    """Return the budget of the request that this task or thread works for, if any."""
    return _current.get()


def metered(work: Awaitable[T]) -> Awaitable[T]:
    """Return an awaitable that spends the time in which a coroutine runs from the current budget, if there is one.

    When it is spent, the coroutine gets an Unavailable from what it awaits.
    """
    budget = _current.get()
    return work if budget is None or not isinstance(work, types.CoroutineType) else _Metered(work, budget)


class _Metered(Coroutine[object, object, T], Iterator[object]):
    """A coroutine whose steps spend from a budget; cancelled or closed before its first step, so is the inner one."""

    __slots__ = ("_budget", "_coroutine")

    def __init__(self, coroutine: Coroutine[object, object, T], budget: Budget) -> None:
        self._coroutine, self._budget = coroutine, budget

    def send(self, value: object) -> object:
        """Run the coroutine to what it awaits next."""
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> object:
        """Raise an error in the coroutine, and run it to what it awaits next."""
        try:
            return self._step(self._coroutine.throw, *error)
        finally:
            del error  # else the error refers to itself by this frame, and to queries that are never closed

    def close(self) -> None:
        """End the coroutine where it is."""
        self._coroutine.close()

    def __await__(self) -> Iterator[object]:  # type: ignore[override]  # an iterator that can be sent values and errors
        return self

    def __next__(self) -> object:
        return self.send(None)

    def _step(self, step: Callable[..., object], *arguments: object) -> object:
        while True:
            began = time.thread_time()
            try:
                awaited = step(*arguments)
            finally:
                self._budget.spend(time.thread_time() - began)
                del arguments
            try:
                self._budget.require()
            except Unavailable as overspent:
                if asyncio.isfuture(awaited):
                    awaited.cancel()
                step, arguments = self._coroutine.throw, (overspent,)
                continue
            return awaited
