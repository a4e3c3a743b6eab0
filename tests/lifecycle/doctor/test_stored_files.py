"""Files that are lost, damaged or of no record are reported."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import FILE_FIELDS
from coaching_service.core.database.documents import now, registry
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.consistency import holding_collections
from tests.support.doctor import (
    LONG_AGO,
    Restored,
    check,
    reported,
)


async def test_no_other_collection_refers_to_files(ctx: Context) -> None:
    """Files of a collection that does not declare them would be reported as unreferenced."""
    for name in registry.keys() - set(holding_collections()) - {"changes", "changeParts"}:
        async for document in ctx.db[name].find({}):
            assert not any(f"'{field}'" in str(document) for field in FILE_FIELDS), name


async def test_lost_and_damaged_files_are_reported(ctx: Context, restored: Restored) -> None:
    """Files without a record are deleted only when the operator says so."""
    photos = await ctx.db["progressPhotos"].find_one({"sides.front": {"$exists": True}})
    plan = await ctx.db["planVersions"].find_one({})
    assert photos is not None
    assert plan is not None
    await restored.delete("fs.files", {"_id": photos["sides"]["front"]["thumbnailId"]})
    await restored.delete("fs.chunks", {"files_id": plan["fileId"]})

    [missing] = await reported(ctx, "files-missing")
    assert (missing.count, missing.example) == (1, str(photos["_id"]))
    [short] = await reported(ctx, "files-bytes")
    assert (short.count, short.example) == (1, str(plan["fileId"]))


async def test_truncated_files_are_reported(ctx: Context, restored: Restored) -> None:
    """All chunks are there, and GridFS says another length: one byte less, and one more."""
    short, long = await ctx.db["fs.files"].find({"length": {"$gt": 2}}).limit(2).to_list(None)
    for file, length in ((short, -1), (long, 1)):
        chunk = await ctx.db["fs.chunks"].find_one({"files_id": file["_id"]}, sort=[("n", -1)])
        assert chunk is not None
        data = chunk["data"][:-1] if length < 0 else chunk["data"] + b"x"
        await restored.change("fs.chunks", {"_id": chunk["_id"]}, {"$set": {"data": data}})
    [damaged] = await reported(ctx, "files-bytes")
    assert (damaged.count, set(damaged.identifiers)) == (2, {str(short["_id"]), str(long["_id"])})


async def test_files_without_a_record_are_deleted_only_on_request(ctx: Context) -> None:
    file = await ctx.db["fs.files"].find_one({})
    assert file is not None
    unreferenced = {**file, "_id": ObjectId(), "uploadDate": LONG_AGO, "length": 1}
    recent = {**unreferenced, "_id": ObjectId(), "uploadDate": now()}
    await ctx.db["fs.files"].insert_many([unreferenced, recent])
    await ctx.db["fs.chunks"].insert_many(
        [{"files_id": each["_id"], "n": 0, "data": b"x"} for each in (unreferenced, recent)]
    )
    [finding] = await reported(ctx, "files-unreferenced")
    assert (finding.count, finding.example) == (1, str(unreferenced["_id"]))

    [result] = await check(ctx.services, "files-unreferenced", repairing=True, deleting_files=True)
    assert (result.findings, result.repaired) == ([], [finding])
    assert await ctx.db["fs.chunks"].count_documents({"files_id": unreferenced["_id"]}) == 0
    assert await ctx.db["fs.files"].count_documents({}) == 1 + len(await ctx.db["fs.chunks"].distinct("files_id")) - 1
    await ctx.db["fs.files"].delete_one({"_id": recent["_id"]})
    await ctx.db["fs.chunks"].delete_one({"files_id": recent["_id"]})
