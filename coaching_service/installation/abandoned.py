"""Aborting transactions that are not continued: their process was killed, or has lost its connection.

MongoDB keeps such a transaction open for a minute, and until then no other transaction can write its documents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.database.connection import APP_NAME, server_state
from coaching_service.core.database.context import Services

IDLE_SECONDS = 8.0  # no transaction of the service pauses that long between two operations
DISCONNECTED_SECONDS = 1.0  # for one whose connection is closed: its process has ended
_INTERVAL_SECONDS = 0.5
_CONNECTIONS_AND_TRANSACTIONS: list[Mapping[str, Any]] = [
    {"$currentOp": {"allUsers": False, "idleSessions": True, "idleConnections": True}},
    {"$match": {"appName": APP_NAME}},
    {
        "$project": {
            "type": 1,
            "client": 1,
            "shard": 1,
            "lsid": 1,
            "transaction.parameters.txnNumber": 1,
            "transaction.timeActiveMicros": 1,
        }
    },
]
_UNKNOWN = "unknown"  # in place of an address that the database does not report
# A session, the number of its transaction, and the microseconds spent on operations so far.
State = tuple[bytes, int, int]
log = structlog.get_logger("coaching_service.database")


def aborting_abandoned_transactions(services: Services) -> AbstractAsyncContextManager[None]:
    """Abort abandoned transactions, of all processes, while the context is open."""
    watch = AbandonedTransactions(services)

    async def abort_repeatedly() -> None:
        while True:
            with suppress(Exception):  # the database is lost, or its user may not list sessions: it aborts them itself
                services.monitor.require()
                await watch.abort(asyncio.get_running_loop().time())
            await asyncio.sleep(_INTERVAL_SECONDS)

    return running_in_background(abort_repeatedly)


@dataclass
class AbandonedTransactions:
    """Finds transactions in which nothing has been done for a while.

    `_idle_since` has, by session, transaction number and time spent on operations, when it was first seen;
    `_disconnected_since` when it was first seen that the connection of its last operation is closed.
    """

    services: Services
    _idle_since: dict[State, float] = field(default_factory=dict)
    _disconnected_since: dict[State, float] = field(default_factory=dict)

    async def abort(self, time: float) -> int:
        """Abort the transactions that have been idle for IDLE_SECONDS at `time`; returns how many.

        DISCONNECTED_SECONDS are enough if the connection is closed. If another connection has its address and port
        meanwhile, or the database is sharded, so that a router is the client, IDLE_SECONDS apply.
        """
        admin = server_state(self.services.db.client)
        entries = [entry async for entry in admin.aggregate(_CONNECTIONS_AND_TRANSACTIONS)]
        idle = {
            _state_of(entry): entry for entry in entries if entry["type"] == "idleSession" and "transaction" in entry
        }
        connected = {entry.get("client") for entry in entries if entry["type"] == "op"} | {_UNKNOWN}
        self._idle_since = {state: self._idle_since.get(state, time) for state in idle}
        self._disconnected_since = {
            state: self._disconnected_since.get(state, time)
            for state, entry in idle.items()
            if entry.get("client", _UNKNOWN) not in connected and "shard" not in entry
        }
        abandoned = [
            {"id": entry["lsid"]["id"]}
            for state, entry in idle.items()
            if time - self._idle_since[state] >= IDLE_SECONDS
            or time - self._disconnected_since.get(state, time) >= DISCONNECTED_SECONDS
        ]
        if abandoned:
            await admin.command("killSessions", abandoned)
            log.warning("abandoned transactions were aborted", count=len(abandoned))
        return len(abandoned)


def _state_of(entry: Mapping[str, Any]) -> State:
    transaction = entry["transaction"]
    return bytes(entry["lsid"]["id"]), transaction["parameters"]["txnNumber"], transaction["timeActiveMicros"]
