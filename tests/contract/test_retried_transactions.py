"""Every operation succeeds when its transaction runs twice, as after a write conflict: it has no effect outside of it.

A repetition of a POST that takes an `Idempotency-Key` returns the first response.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pymongo.errors import OperationFailure

from coaching_service import features
from coaching_service.core.database import context
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import routes_of
from tests.conftest import NewCompany
from tests.contract.test_declared import call, fill_path
from tests.contract.test_examples import in_order, train, unconditional
from tests.contract.test_repeated_requests import CONVERSION, EXECUTED_ONCE, assert_repeated, without_dry_run
from tests.people.test_second_factor import set_up
from tests.support.authenticator import register
from tests.support.declared_world import make_world

# Their examples have identifiers of other documents, so they are refused.
OTHER_DOCUMENTS = {"archiveCustomer", "replaceExerciseOverride", "unarchiveCustomer"}
Commit = Callable[..., Awaitable[None]]


@pytest.fixture
def first_commits_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transaction is rolled back once, and runs again; those of background work too."""
    commit: Commit = context._commit
    seen: list[object] = []

    async def fail_first(ctx: Context, session: Any, may_continue: Callable[[], bool]) -> None:
        if may_continue not in seen:  # one for all attempts at a transaction
            seen.append(may_continue)
            raise OperationFailure("write conflict", 112, {"errorLabels": ["TransientTransactionError"]})
        await commit(ctx, session, may_continue)

    monkeypatch.setattr(context, "_commit", fail_first)


async def test_every_operation_succeeds_when_its_transaction_runs_twice(
    new_company: NewCompany, request: pytest.FixtureRequest
) -> None:
    """With an Idempotency-Key all of an operation, from its arguments on, is in the transaction."""
    repeated = set()
    coach = await new_company()
    world = await make_world(coach)
    await train(coach, world)
    request.getfixturevalue("first_commits_fail")
    statuses = {}
    # Imports last: they store loads, and run on.
    for route in sorted(in_order(routes_of(features.ROUTES)), key=lambda each: each.multipart is not None):
        if route.method != "GET":
            name, path, sent = f"{route.method} {route.path}", fill_path(route, world), unconditional(route)
            if name != CONVERSION:
                sent = without_dry_run(sent)
            headers = {} if route.refuses_key else {"Idempotency-Key": secrets.token_hex(8)}
            reply = await call(coach, sent, path, world, headers)
            if reply.status != route.status and route.operation_id not in OTHER_DOCUMENTS:
                statuses[route.operation_id] = reply.status
            if name in EXECUTED_ONCE and name != CONVERSION:
                repeated.add(name)
                assert_repeated(reply, await call(coach, sent, path, world, headers), name)
    assert statuses.pop("confirmSecondFactor") == 400  # the code of its example is of another secret
    assert statuses.pop("createPasskey") == 400  # no authenticator has made its example
    assert repeated == EXECUTED_ONCE - {CONVERSION}
    session = await coach.interactive()
    await set_up(session)
    await register(session)
    assert statuses == {}
