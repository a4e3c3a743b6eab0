"""Documents that refer to nothing are reported."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from tests.support.doctor import (
    Restored,
    reported,
)


async def test_broken_references_are_reported(ctx: Context, restored: Restored) -> None:
    note = await restored.change("notes", {}, {"$set": {"customerId": ObjectId()}})
    block = await restored.change(
        "workoutBlocks", {"items.type": "EXERCISE"}, {"$set": {"items.0.exerciseId": ObjectId()}}
    )
    of_other_company = {"_id": ObjectId(), "companyId": ObjectId(), "version": 0}
    await restored.insert("metricSets", of_other_company)
    entry = await restored.change("metricEntries", {}, {"$set": {"metricsSetId": of_other_company["_id"]}})
    trainer = await restored.change("customers", {}, {"$set": {"customerRoleData.assignedTo": ObjectId()}})

    findings = await reported(ctx, "references")
    assert {(finding.problem, finding.count, finding.example) for finding in findings} == {
        ("Documents of notes whose customerId is not in customers", 1, str(note)),
        ("Documents of workoutBlocks whose items.exerciseId is not in exercises", 1, str(block)),
        ("Documents of metricEntries whose metricsSetId is not in metricSets", 1, str(entry)),
        ("Documents of customers whose customerRoleData.assignedTo is not in coaches", 1, str(trainer)),
    }
    [company] = await reported(ctx, "companies")
    assert (company.example, company.count) == (str(of_other_company["companyId"]), 1)


async def test_sandboxes_of_no_company_are_reported(ctx: Context, restored: Restored) -> None:
    sandbox = {"_id": ObjectId(), "sandboxOf": ctx.company_id, "createdAt": now()}
    await restored.insert("companies", sandbox | {"companyId": sandbox["_id"]})
    [finding] = await reported(ctx, "sandboxes")
    assert (finding.count, finding.example) == (1, str(sandbox["_id"]))
    await restored.change("companies", {"_id": ctx.company_id}, {"$set": {"sandboxId": sandbox["_id"]}})
    assert await reported(ctx, "sandboxes") == []
    await restored.delete("companies", {"_id": ctx.company_id})
    assert len(await reported(ctx, "sandboxes")) == 1


async def test_records_without_their_log_are_reported(ctx: Context, restored: Restored) -> None:
    """The item is gone, or its log is."""
    first, second = await ctx.db["personalRecords"].find({"source": "log"}).limit(2).to_list(None)
    lost = await restored.change("personalRecords", {"_id": first["_id"]}, {"$set": {"witemId": ObjectId()}})
    await restored.change("workoutBlocks", {"items._id": second["witemId"]}, {"$set": {"items.$[].customerSets": []}})
    [finding] = await reported(ctx, "records")
    assert {str(lost), str(second["_id"])} <= set(finding.identifiers)


async def test_check_ins_of_a_deleted_form_are_a_notice(ctx: Context, restored: Restored) -> None:
    check_in = await restored.change("checkIns", {"formId": {"$ne": None}}, {"$set": {"formId": ObjectId()}})
    [finding] = await reported(ctx, "check-ins")
    assert (finding.count, finding.example, finding.is_notice) == (1, str(check_in), True)


async def test_negative_loads_are_reported(ctx: Context, restored: Restored) -> None:
    """Of a set that is planned, or that is done."""
    damaged: set[ObjectId] = set()
    for path in ("exerciseSets", "customerSets"):
        where = {f"items.0.{path}.0.load": {"$gt": 0}, "_id": {"$nin": list(damaged)}}
        damaged.add(await restored.change("workoutBlocks", where, {"$set": {f"items.0.{path}.0.load": -64}}))
    [finding] = await reported(ctx, "workout-loads")
    assert set(finding.identifiers) == {str(each) for each in damaged}
