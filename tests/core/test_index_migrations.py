"""The steps of migrations that drop or replace indexes; how they run: test_migration_runs.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now, registry
from coaching_service.core.ids import ObjectId
from coaching_service.installation import migrations
from coaching_service.installation.migrations import migrate


async def test_the_unique_index_of_first_access_tokens_is_dropped(old_database: Services) -> None:
    """It cannot be enforced on a sharded cluster; until now it was named after its only field."""
    customers = old_database.db["customers"]
    await customers.create_index("firstAccessHash", name="firstAccessHash", unique=True, sparse=True)

    await migrate(old_database.db, old_database.vault)

    assert "firstAccessHash" not in await customers.index_information()
    await migrations.first_access_index(old_database.db, old_database.vault)


async def test_the_unique_index_of_jobs_without_clients_is_dropped(old_database: Services) -> None:
    jobs = old_database.db["companyJobs"]
    unfinished = {"status": {"$gte": "queued"}}
    keys = [("companyId", 1), ("kind", 1)]
    await jobs.create_index(keys, name="companyId_kind", unique=True, partialFilterExpression=unfinished)

    await migrate(old_database.db, old_database.vault)

    assert "companyId_kind" not in await jobs.index_information()
    await migrations.one_collection_of_jobs(old_database.db, old_database.vault)


async def test_numbers_of_changes_get_batches_and_lose_their_indexes(old_database: Services) -> None:
    """The step can be interrupted; changes that are older than 31 days, or have no number, are left out."""
    db, apply = old_database.db, migrations.number_batches
    first, second = ObjectId(), ObjectId()

    def change(company: ObjectId, seq: int, last: int, **fields: Any) -> dict[str, Any]:
        numbers = {"seq": seq, "lastSeq": last, "createdAt": now()}
        return {"_id": ObjectId(), "companyId": company, **numbers, **fields}

    stored = [change(first, number, number) for number in range(1, 498)]
    stored[0]["createdAt"] = now() - timedelta(days=32)
    stored += [change(first, 498, 501), change(first, 502, 502), change(second, 1, 2)]
    await db["changes"].insert_many(stored)
    await db["changes"].insert_one({"_id": ObjectId(), "companyId": first, "pending": True, "createdAt": now()})
    await db["changes"].create_index([("companyId", 1), ("lastSeq", 1)], name="companyId_lastSeq")
    await db["changes"].create_index("pending", name="pending")

    await apply(db, old_database.vault)
    await db["changeNumbers"].delete_one({"companyId": first, "last": 502})
    await apply(db, old_database.vault)

    batches = await db["changeNumbers"].find({}).sort([("companyId", 1), ("last", 1)]).to_list(None)
    assert [(each["companyId"], each["first"], each["last"], len(each["changes"])) for each in batches] == [
        (first, 2, 497, 496),
        (first, 498, 502, 2),
        (second, 1, 2, 1),
    ]
    assert batches[1]["changes"] == [{"_id": each["_id"], "lastSeq": each["lastSeq"]} for each in stored[-3:-1]]
    assert batches[1]["numberedAt"] == stored[-2]["createdAt"]
    indexes = await db["changes"].index_information()
    assert set(indexes) == {"_id_", *(each.name for each in registry["changes"].indexes)}


async def test_jobs_of_bulk_operations_become_jobs_of_their_company(old_database: Services) -> None:
    """An unfinished one continues where it was; the step can be interrupted."""
    db, company, coach = old_database.db, ObjectId(), ObjectId()
    old_keys = [("companyId", 1), ("kind", 1), ("customerId", 1)]
    await db["companyJobs"].create_index(old_keys, unique=True, name="companyId_kind_customerId")
    caller = {"coachId": coach, "via": "session", "permissions": ["customers.edit"]}
    work = {"operation": "bulkArchiveCustomers", "ids": ObjectId().binary, "ok": 0, "failed": []}
    old = {"companyId": company, "kind": "bulk", "status": "running", "done": 3, "total": 4}
    own = [{"_id": ObjectId(), "batchId": ObjectId()} for _ in range(2)]
    stored = [{**old, **each, "coachId": coach, "work": {**work, "caller": caller}} for each in own]
    await db["bulkJobs"].insert_many(stored)
    await migrations.one_collection_of_jobs(db, old_database.vault)
    await db["bulkJobs"].insert_one(stored[0])  # as if it had been interrupted

    await migrations.one_collection_of_jobs(db, old_database.vault)

    expected = {**old, "work": work, "caller": caller, "requestedBy": coach, "customerId": None}
    moved = await db["companyJobs"].find({}).sort("_id", 1).to_list(None)
    assert moved == [{**each, **expected} for each in own]
    assert "bulkJobs" not in await db.list_collection_names()
    assert "companyId_kind_customerId" not in await db["companyJobs"].index_information()
