"""Damage that a check finds, and its repair corrects."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from tests.support.doctor import (
    LONG_AGO,
    Damage,
    check,
    findings_of,
    new_job,
)


async def drop_index(ctx: Context) -> None:
    await ctx.db["notes"].drop_index("companyId_customerId_-createdAt_-_id")


async def miscount_clients(ctx: Context) -> None:
    await ctx.db["customerTotals"].update_one({"companyId": ctx.company_id}, {"$inc": {"active": 2, "archived": -1}})


async def miscount_files(ctx: Context) -> None:
    where = {"_id": ctx.company_id, "companyId": ctx.company_id}
    await ctx.db["fileTotals"].update_one(where, {"$inc": {"files": 1, "bytes": -5}}, upsert=True)


async def lose_client_counts(ctx: Context) -> None:
    await ctx.db["customerTotals"].delete_many({"companyId": ctx.company_id})


async def miscount_groups(ctx: Context) -> None:
    await ctx.db["groupTotals"].update_one({"companyId": ctx.company_id}, {"$inc": {"active": 2, "archived": -1}})


async def lose_group_counts(ctx: Context) -> None:
    await ctx.db["groupTotals"].delete_many({"companyId": ctx.company_id})


async def change_totals(ctx: Context) -> None:
    await ctx.db["workoutBlocks"].update_one({"done.sets": {"$gt": 0}}, {"$inc": {"done.sets": 1}})


async def lower_plan_counter(ctx: Context) -> None:
    await ctx.db["planCounters"].update_one({}, {"$set": {"version": -1}})


async def lose_plan_counter(ctx: Context) -> None:
    await ctx.db["planCounters"].delete_many({})


async def miscount_messages(ctx: Context) -> None:
    await ctx.db["conversations"].update_one({}, {"$inc": {"unread.client": 3}})


async def hide_unread_conversation(ctx: Context) -> None:
    await ctx.db["conversations"].update_one({"isUnread": True}, {"$set": {"isUnread": False}})


async def lower_change_counter(ctx: Context) -> None:
    await ctx.db["changeCounters"].update_one({"_id": ctx.company_id}, {"$inc": {"lastSeq": -5}})


async def lose_number(ctx: Context) -> None:
    await ctx.db["changeNumbers"].update_one({"companyId": ctx.company_id}, {"$pop": {"changes": 1}})


async def confuse_number(ctx: Context) -> None:
    await ctx.db["changeNumbers"].update_one({"companyId": ctx.company_id}, {"$inc": {"changes.0.lastSeq": 100_000}})


async def cut_number_batch(ctx: Context) -> None:
    await ctx.db["changeNumbers"].update_one({"companyId": ctx.company_id}, {"$inc": {"last": -1}})


async def block_job(ctx: Context) -> None:
    job = new_job(ctx, attempts=1, lease="of a process that is gone", runAfter=now() + timedelta(days=3))
    await ctx.db["jobs"].insert_one(job)


async def interrupt_upload(ctx: Context) -> None:
    file = await ctx.db["fs.files"].find_one({})
    assert file is not None
    upload = {**file, "_id": ObjectId(), "pending": True, "uploadDate": LONG_AGO}
    await ctx.db["fs.files"].insert_one(upload)
    await ctx.db["fs.chunks"].insert_one({"files_id": upload["_id"], "n": 0, "data": b"x"})


async def leave_chunks(ctx: Context) -> None:
    file_id = ObjectId.from_datetime(LONG_AGO)
    await ctx.db["fs.chunks"].insert_many([{"files_id": file_id, "n": number, "data": b"x"} for number in range(2)])


REPAIRED: list[tuple[str, Damage, int]] = [
    ("indexes-missing", drop_index, 1),
    ("client-numbers", miscount_clients, 1),
    ("client-numbers", lose_client_counts, 1),
    ("group-numbers", miscount_groups, 1),
    ("group-numbers", lose_group_counts, 1),
    ("file-totals", miscount_files, 1),
    ("workout-totals", change_totals, 1),
    ("plan-numbers", lower_plan_counter, 1),
    ("plan-numbers", lose_plan_counter, 2),
    ("unread-messages", miscount_messages, 1),
    ("unread-messages", hide_unread_conversation, 1),
    ("change-counters", lower_change_counter, 1),
    ("change-order", lose_number, 1),
    ("change-order", confuse_number, 1),
    ("change-order", cut_number_batch, 1),
    ("jobs-blocked", block_job, 1),
    ("files-orphaned", interrupt_upload, 1),
    ("files-orphaned", leave_chunks, 1),
]


@pytest.mark.parametrize(("name", "damage", "count"), REPAIRED, ids=[damage.__name__ for _, damage, _ in REPAIRED])
async def test_damage_is_found_and_repaired(ctx: Context, name: str, damage: Damage, count: int) -> None:
    await damage(ctx)
    [(seen, finding)] = findings_of(await check(ctx.services, name))
    assert (seen, finding.count, finding.is_notice) == (name, count, False)
    assert finding.example
    assert finding.advice

    [result] = await check(ctx.services, name, repairing=True)
    assert (result.findings, result.repaired, result.error) == ([], [finding], None)
    assert findings_of(await check(ctx.services, name)) == []
