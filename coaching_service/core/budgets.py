"""The processor time that a request may use: what a defect or a damaged document makes endless ends after it."""

from __future__ import annotations

import asyncio
import math
import time
import types
from collections.abc import Awaitable, Coroutine, Generator
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
            raise _overspent()


def current() -> Budget | None:
    """Return the budget of the request that this task or thread works for, if any."""
    return _current.get()


def metered(work: Awaitable[T]) -> Awaitable[T]:
    """Return an awaitable that spends the time in which a coroutine runs from the current budget, if there is one.

    When it is spent, the coroutine gets an Unavailable from what it awaits.
    """
    budget = _current.get()
    return work if budget is None or not asyncio.iscoroutine(work) else _run(work, budget)


@types.coroutine
def _run(coroutine: Coroutine[Any, Any, T], budget: Budget) -> Generator[Any, Any, T]:
    sent: Any = None
    error: BaseException | None = None
    while True:
        began = time.thread_time()
        try:
            awaited = coroutine.send(sent) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]  # of the coroutine
        finally:
            budget.spend(time.thread_time() - began)
        sent = error = None
        try:
            budget.require()
        except Unavailable as overspent:
            if asyncio.isfuture(awaited):
                awaited.cancel()
            error = overspent
            continue
        try:
            sent = yield awaited
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is for the coroutine
            error = raised


def _overspent() -> Unavailable:
    return Unavailable("The request takes too much processor time; ask for less at once")
