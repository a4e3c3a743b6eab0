"""This code serves the databases that releases have written, and documents with fields of a later version."""

from __future__ import annotations

from pathlib import Path

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.installation import migrations
from coaching_service.progress.personal_records import RENEW
from coaching_service.settings import Settings
from tests.reliability.deployment import Node
from tests.support.sampled import some
from tests.support.service_process import until
from tests.upgrades.release import Document, Release, releases
from tests.upgrades.usage import database_of, run, use

# Records that nothing holds any more: estimates of sets of 12 repetitions at RPE 8.5, from which step 24 derives none.
GONE = {"0.2.0": {"6b03f9d1b0481c8371790987", "6b03f9d1b0481c8371790a82"}}
LATER: Document = {"fieldOfLaterVersion": {"list": [1, {"deep": True}], "text": "x"}}


@pytest.mark.parametrize("release", some(releases()[::-1], 1), ids=lambda release: release.version)
async def test_data_of_a_release_is_migrated_and_served(release: Release, settings: Settings, tmp_path: Path) -> None:
    """As docs/upgrading.md says: plan, migrate, start; then all is there and sound.

    All documents have a field that this code does not know, as a later patch version may add: they are served, and
    writes preserve it.
    """
    async with database_of(release, settings) as (own, db):
        node = Node(tmp_path / "data", own, release.facts["apiKey"])
        try:
            for name in db.list_collection_names(filter={"type": "collection"}):
                if name not in ("fs.chunks", migrations.COLLECTION):
                    db[name].update_many({}, {"$set": LATER})
            applied = {record["_id"] for record in db[migrations.COLLECTION].find()}
            pending = [step for step in migrations.STEPS if step.number not in applied]
            plan = (await run(node, "migrate", "--plan")).ok()
            assert plan.count("\n") == max(len(pending), 1)
            assert all(f"{step.number}  {step.name}: " in plan for step in pending)
            node.begin()
            if pending:
                await until(lambda: "waiting for migrations" in node.logged, "the service waits for migrations")
                assert not await node.is_ready()
            (await run(node, "migrate")).ok()
            await until(node.is_ready, "the service is ready")
            await until(lambda: not db["jobs"].count_documents({"kind": RENEW}), "figures are computed again")
            gone = GONE.get(release.version, set())
            assert gone.isdisjoint(str(each["_id"]) for each in db["personalRecords"].find({}, {"_id": 1}))
            async with node.session(2) as http:
                changed = await use(http, release, gone)
            stored = db["customers"].find_one({"_id": ObjectId(changed)})
            assert stored is not None
            assert (stored["name"], stored["fieldOfLaterVersion"]) == ("Renamed", LATER["fieldOfLaterVersion"])
            await until(
                lambda: not db["changes"].count_documents({"pending": {"$exists": True}}), "all changes have numbers"
            )
            await node.require_whole(allowed=["indexes-undeclared"])  # some that only the release had may be left
        finally:
            if node.process is not None:
                await node.end()
