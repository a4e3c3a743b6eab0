"""Aborting transactions that are not continued: their process was killed, or has lost its connection.

MongoDB keeps such a transaction open for a minute, and until then no other transaction can write its documents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.database.connection import APP_NAME
from coaching_service.core.database.context import Services

IDLE_SECONDS = 8.0  # no transaction of the service pauses that long between two operations
_INTERVAL_SECONDS = 1.0
_OPEN_TRANSACTIONS: list[Mapping[str, Any]] = [
    {"$currentOp": {"allUsers": False, "idleSessions": True}},
    {"$match": {"type": "idleSession", "appName": APP_NAME, "transaction": {"$exists": True}}},
    {"$project": {"lsid": 1, "transaction.parameters.txnNumber": 1, "transaction.timeActiveMicros": 1}},
]
log = structlog.get_logger("coaching_service.database")


def aborting_abandoned_transactions(services: Services) -> AbstractAsyncContextManager[None]:
    """Abort abandoned transactions, of all processes, while the context is open."""
    return running_in_background(partial(_work, services))


async def _work(services: Services) -> None:
    watch = AbandonedTransactions(services)
    while True:
        with suppress(Exception):  # the database is lost, or its user may not list sessions: it aborts them itself
            services.monitor.require()
            await watch.abort(asyncio.get_running_loop().time())
        await asyncio.sleep(_INTERVAL_SECONDS)


@dataclass
class AbandonedTransactions:
    """Finds transactions in which nothing has been done for a while.

    `_idle_since` has, by session, transaction number and time spent on operations, when it was first seen.
    """

    services: Services
    _idle_since: dict[tuple[bytes, int, int], float] = field(default_factory=dict)

    async def abort(self, time: float) -> int:
        """Abort the transactions that have been idle for IDLE_SECONDS at `time`; returns how many."""
        admin = self.services.db.client["admin"]
        sessions = {_state_of(entry): entry["lsid"]["id"] async for entry in admin.aggregate(_OPEN_TRANSACTIONS)}
        self._idle_since = {state: self._idle_since.get(state, time) for state in sessions}
        abandoned = [
            {"id": sessions[state]} for state, since in self._idle_since.items() if time - since >= IDLE_SECONDS
        ]
        if abandoned:
            await admin.command("killSessions", abandoned)
            log.warning("abandoned transactions were aborted", count=len(abandoned))
        return len(abandoned)


def _state_of(entry: Mapping[str, Any]) -> tuple[bytes, int, int]:
    transaction = entry["transaction"]
    return bytes(entry["lsid"]["id"]), transaction["parameters"]["txnNumber"], transaction["timeActiveMicros"]
