"""Stored responses and rate counters: independent of the clock of a process, and clear about a missing key."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine

from coaching_service.core import rate_limits
from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.documents import now
from coaching_service.core.errors import TooManyRequests
from coaching_service.core.idempotency import (
    Claim,
    ResponseUnreadable,
    StoredResponse,
    claim_steps,
    find_done_steps,
    run_in_steps,
    run_once,
)
from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.stored import stored_document

SHIFTS = pytest.mark.parametrize("shift", [timedelta(days=2), timedelta(days=-2)], ids=["fast", "slow"])


@SHIFTS
async def test_wrong_clock_does_not_repeat_a_request(coach: CoachClient, shift: timedelta) -> None:
    """Neither is a response forgotten by such a process, nor does one it stored expire early or late."""
    runs = 0

    async def work(_: Any) -> tuple[StoredResponse, None]:
        nonlocal runs
        runs += 1
        return StoredResponse(201, b"{}"), None

    claims = [Claim.of(coach.ctx, key, "POST", "/path", {}) for key in ("right-clock", "wrong-clock")]
    await run_once(coach.ctx, claims[0], None, work)
    with time_machine.travel(datetime.now().astimezone() + shift):
        assert (await run_once(coach.ctx, claims[0], None, work)).replayed
        await run_once(coach.ctx, claims[1], None, work)
        await run_in_steps(coach.ctx, Claim.of(coach.ctx, "in-steps", "POST", "/path", {}), work)
        step = ObjectId()
        await claim_steps(coach.ctx, claims[1], [step], lambda _: None)
        assert await find_done_steps(coach.ctx, claims[1], [step]) == {step: None}
    assert (await run_once(coach.ctx, claims[1], None, work)).replayed
    assert runs == 3
    stored = await coach.ctx.db["replays"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert len(stored) == 4
    assert all(abs(record["createdAt"] - now()) < timedelta(hours=1) for record in stored)


async def test_response_without_its_key_is_a_conflict_with_a_code(coach: CoachClient) -> None:
    async def work(_: Any) -> tuple[StoredResponse, None]:
        return StoredResponse(201, b"{}"), None

    claim = Claim.of(coach.ctx, "key", "POST", "/path", {})
    await run_once(coach.ctx, claim, None, work)
    services = replace(coach.ctx.services, vault=Vault([parse_master_key(new_master_key())]))
    with pytest.raises(ResponseUnreadable) as raised:
        await run_once(replace(coach.ctx, services=services), claim, None, work)
    assert raised.value.status == 409
    assert raised.value.body()["code"] == "IDEMPOTENT_RESPONSE_UNREADABLE"


async def test_attempts_do_not_extend_the_window_of_a_limit(coach: CoachClient) -> None:
    """Nor does one that is refused."""
    services, name = coach.ctx.services, str(ObjectId())
    await rate_limits.count(services, "test", name)
    counters = coach.ctx.db["rateLimits"]
    stored = await counters.find_one(sort=[("until", -1)])
    assert stored is not None
    soon = stored["until"] - timedelta(minutes=14)
    await counters.update_one({"_id": stored["_id"]}, {"$set": {"until": soon}})
    for number in (2, 3):
        attempts, seconds = await rate_limits.count(services, "test", name)
        assert (attempts, seconds) == (number, pytest.approx(60, abs=30))
    with pytest.raises(TooManyRequests) as refused:
        await rate_limits.limit(services, "test", name, 3)
    assert int(refused.value.headers["Retry-After"]) == pytest.approx(60, abs=30)
    assert (await stored_document(counters, {"_id": stored["_id"]}))["until"] == soon


@SHIFTS
async def test_wrong_clock_does_not_end_a_rate_limit(coach: CoachClient, shift: timedelta) -> None:
    services, name = coach.ctx.services, str(ObjectId())
    assert await rate_limits.get_count(services, "test", name) == (0, 0)
    attempts, seconds = await rate_limits.count(services, "test", name)
    assert (attempts, seconds) == (1, pytest.approx(900, abs=60))
    with time_machine.travel(datetime.now().astimezone() + shift):
        attempts, seconds = await rate_limits.count(services, "test", name)
        assert (attempts, seconds) == (2, pytest.approx(900, abs=120))
    assert (await rate_limits.get_count(services, "test", name))[0] == 2
    await rate_limits.reset(services, "test", name)
    assert await rate_limits.get_count(services, "test", name) == (0, 0)
