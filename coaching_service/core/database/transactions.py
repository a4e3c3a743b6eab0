"""Transactions: a function that runs in one, and independent reads inside or outside of one."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from motor.motor_asyncio import AsyncIOMotorClientSession
from pymongo.errors import PyMongoError

from coaching_service.core.database.context import Context
from coaching_service.core.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE_SECONDS = 20.0
_BACKOFF_SECONDS = 0.005
_MAX_BACKOFF_SECONDS = 0.1
_ABORT_SECONDS = 0.5
_TRANSIENT = "TransientTransactionError"
_COMMIT_UNKNOWN = "UnknownTransactionCommitResult"


def transactional(
    function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]:
    """Run `function` in one transaction, or inside the transaction its context is already in.

    The function is called again when the transaction collides with another one: it must have no effect outside the
    database. Raises Unavailable when it still collides after 20 seconds.
    """

    @wraps(function)
    async def in_its_transaction(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_transaction(ctx, lambda tx: function(tx, *args, **kwargs))

    return in_its_transaction


async def in_transaction(
    ctx: Context, work: Callable[[Context], Awaitable[T]], *, patience: float = PATIENCE_SECONDS
) -> T:
    """Call `work` in one transaction, or inside the one `ctx` is already in, and return its result.

    `work` is called again when the transaction fails for a transient reason, such as a write conflict, and the commit
    is repeated when its outcome is unknown: Motor's own `with_transaction` commits outside its retry loop, so it does
    neither for a commit. Neither is begun again after `patience` seconds: then raises Unavailable, or the driver's
    error when the outcome of the commit stays unknown.
    """
    if ctx.session is not None:
        return await work(ctx)
    deadline = time.monotonic() + patience
    attempt = 0
    session = await ctx.db.client.start_session()
    try:
        while True:
            session.start_transaction()
            try:
                result = await work(replace(ctx, session=session))
                await _commit(session, deadline)
            except BaseException as error:
                is_aborted = await _abort(session)
                if not _is_transient(error):
                    raise
                if time.monotonic() > deadline:
                    message = "The database cannot be reached or is too busy; nothing was changed, try again"
                    raise Unavailable(message) from error
            else:
                return result
            if not is_aborted:  # a thread still works on it: another transaction cannot be started on this session
                await _end(session)
                session = await ctx.db.client.start_session()
            attempt += 1
            await asyncio.sleep(random.random() * min(attempt * _BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS))  # noqa: S311 - jitter, no secret
    finally:
        await _end(session)


async def _commit(session: AsyncIOMotorClientSession, deadline: float) -> None:
    """Commit, again while the outcome is unknown: a commit that is repeated takes effect once."""
    while True:
        try:
            await session.commit_transaction()
        except PyMongoError as error:
            if not error.has_error_label(_COMMIT_UNKNOWN) or time.monotonic() > deadline:
                raise
        else:
            return


async def _abort(session: AsyncIOMotorClientSession) -> bool:
    """Abort without waiting long: the server aborts an abandoned transaction by itself. Returns whether it ended."""
    if session.delegate.in_transaction:
        with suppress(PyMongoError, TimeoutError):
            async with asyncio.timeout(_ABORT_SECONDS):
                await session.abort_transaction()
    return not session.delegate.in_transaction


async def _end(session: AsyncIOMotorClientSession) -> None:
    """End the session on a thread: as a context manager it would abort an open transaction on the event loop."""
    with suppress(PyMongoError, TimeoutError):
        async with asyncio.timeout(_ABORT_SECONDS):
            await session.end_session()


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, PyMongoError) and error.has_error_label(_TRANSIENT)


async def gather_reads(ctx: Context, *reads: Awaitable[Any]) -> list[Any]:
    """Return the results of independent `reads`, in their order.

    They run at the same time, or one after another inside a transaction, which takes one operation at a time.
    Of several failures the first in order is raised.
    """
    if ctx.session is None:
        results = await asyncio.gather(*reads, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results
    results = []
    pending = list(reads)
    try:
        while pending:
            results.append(await pending.pop(0))
    finally:
        for unread in pending:
            if asyncio.iscoroutine(unread):
                unread.close()
    return results
