"""Numbers of the change log that are lost or wrong are reported."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.changes import history
from coaching_service.core.changes.numbering import find_long_pending
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.people.customers import batch as creation
from tests.support.doctor import (
    LONG_AGO,
    check,
    findings_of,
    reported,
)


async def test_wrong_numbers_of_changes_are_reported(new_ctx: Context) -> None:
    """A gap is a loss, unless clients were deleted: their changes are erased."""
    changes = new_ctx.db["changes"]
    numbered = await changes.find({}).sort("lastSeq", 1).to_list(None)
    await changes.delete_one({"_id": numbered[2]["_id"]})
    await changes.update_one({"_id": numbered[5]["_id"]}, {"$set": {"seq": numbered[4]["lastSeq"]}})
    lost, repeated = await reported(new_ctx, "change-numbers")
    assert (lost.problem, lost.count, lost.example) == ("Numbers that no change has", 1, str(numbered[3]["_id"]))
    assert (repeated.problem, repeated.example) == ("Numbers that several changes have", str(numbered[5]["_id"]))
    await changes.delete_one({"_id": numbered[-1]["_id"]})
    [ahead] = await reported(new_ctx, "change-counters")
    assert (ahead.problem, ahead.example) == ("Counters ahead of the last number", str(new_ctx.company_id))

    await changes.update_one({"_id": numbered[5]["_id"]}, {"$set": {"seq": numbered[5]["seq"]}})
    deleted = {"collection": "customers", "action": "deleted"}
    await changes.update_one({"_id": numbered[0]["_id"]}, {"$push": {"documents": deleted}})
    [notice] = await reported(new_ctx, "change-numbers")
    assert (notice.is_notice, notice.count) == (True, 1)
    assert await reported(new_ctx, "change-counters") == []


async def test_lost_batches_of_numbers_are_built_again(new_ctx: Context) -> None:
    stored = new_ctx.db["changeNumbers"]
    complete = await history.list_numbered(new_ctx, 0, 10, since=LONG_AGO)
    await stored.delete_many({})
    old = await new_ctx.db["changes"].find_one({}, sort=[("lastSeq", -1)])
    assert old is not None
    gone = {"$set": {"createdAt": now() - timedelta(days=31)}}  # its event is no longer available
    await new_ctx.db["changes"].update_one({"_id": old["_id"]}, gone)
    [(_, finding)] = findings_of(await check(new_ctx.services, "change-order"))
    assert (finding.problem, finding.count) == ("Changes that events leave out", len(complete.changes) - 1)
    [result] = await check(new_ctx.services, "change-order", repairing=True)
    assert (result.findings, result.repaired) == ([], [finding])
    repaired = await history.list_numbered(new_ctx, 0, 10, since=LONG_AGO)
    assert repaired.changes == complete.changes[:-1]
    [batch] = await stored.find({}).to_list(None)
    assert (batch["first"], batch["last"]) == (1, old["seq"] - 1)


async def test_changes_without_a_number_are_reported(new_ctx: Context) -> None:
    change = await creation.create_customer(new_ctx, {"name": "Pending"})
    assert await reported(new_ctx, "change-log") == [], "it is younger than a minute"
    assert len(await find_long_pending(new_ctx.services, seconds=-1, limit=10)) == 1
    assert change["_id"]
