"""A clean database, and what checks report of the whole database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from coaching_service.command_line.doctor import _print
from coaching_service.core import rate_limits
from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.checks import Check, Finding, run_checks
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.installation.indexes import find_unused
from coaching_service.installation.server_versions import remark_on
from tests.support.doctor import (
    CHECKS,
    Restored,
    check,
    findings_of,
    new_job,
    reported,
)


async def test_version_of_the_database_is_reported_as_a_notice(ctx: Context) -> None:
    version = (await ctx.db.client.server_info())["version"]
    remark = remark_on(version, now().date())
    expected = [Finding(remark.problem, 1, version, remark.advice, is_notice=True)] if remark else []
    [result] = await check(ctx.services, "database-version")
    assert (result.findings, result.error) == (expected, None)


async def test_demo_company_is_clean(ctx: Context) -> None:
    await rate_limits.count(ctx.services, "sign-in", "somebody")  # which has no tokens of a bucket
    results = await check(ctx.services)
    assert findings_of(results) == []
    read = {result.check.name for result in results if result.documents}
    assert {"references", "files-missing", "files-bytes", "change-numbers"} <= read


async def test_secrets_that_no_key_opens_are_reported(ctx: Context, restored: Restored) -> None:
    """Each of them is encrypted with another key; a changed byte is found too."""
    other = Vault([parse_master_key(new_master_key())])
    await restored.insert("jobs", new_job(ctx, other))
    await restored.insert(
        "webhooks", {"companyId": ctx.company_id, "slot": 99, "secrets": [{"sealed": other.seal(b"x", "x")}]}
    )
    await restored.insert("replays", {"companyId": ctx.company_id, "answer": other.seal(b"x", "x"), "createdAt": now()})
    key = await ctx.db["apiKeys"].find_one({})
    assert key is not None
    changed = key["sealed"][:-1] + bytes([key["sealed"][-1] ^ 1])
    await restored.change("apiKeys", {"_id": key["_id"]}, {"$set": {"sealed": changed}})
    for name in ("secrets-mail", "secrets-webhooks", "secrets-responses", "secrets-keys"):
        [finding] = await reported(ctx, name)
        assert finding.count == 1, name


async def test_other_and_unused_indexes_are_reported(ctx: Context) -> None:
    await ctx.db["notes"].create_index("made_by_hand")
    [finding] = await reported(ctx, "indexes-undeclared")
    assert (finding.count, finding.example) == (1, "notes.made_by_hand_1")
    await ctx.db["notes"].drop_index("made_by_hand_1")
    [unused] = [each async for each in find_unused(ctx.services, lambda _: None, timedelta(0))]
    assert unused.is_notice
    assert unused.count > 1


async def test_check_that_cannot_run_does_not_stop_the_others(ctx: Context) -> None:
    async def fail(*_: object) -> AsyncIterator[Finding]:
        for error in (RuntimeError("no privilege"),):
            raise error
        yield Finding("never", 1, None, "")

    failing, other = await run_checks(ctx.services, [Check("x", "X", fail), CHECKS["client-numbers"]])
    assert failing.error is not None
    assert failing.error.startswith(
        "A document has a value of another type, which the check of documents names (Runtime"
    )
    assert (failing.findings, other.error) == ([], None)


# Values that a document may have in place of what it should have, and an index that a check needs.
DAMAGED: list[tuple[str, dict[str, Any]]] = [
    ("customers", {"$set": {"customerRoleData": "secret words"}}),
    ("workoutBlocks", {"$set": {"items": "secret words"}}),
    ("workoutBlocks", {"$set": {"items.0": "secret words", "done": ["secret words"]}}),
    ("progressPhotos", {"$set": {"sides": ["secret words"]}}),
    ("fs.files", {"$set": {"length": "secret words"}}),
    ("jobs", {"$set": {"arguments": "secret words", "kind": "send_mail"}}),
    ("changes", {"$set": {"number": "secret words", "events": "secret words"}}),
    ("apiKeys", {"$set": {"sealed": "secret words"}}),
    ("coaches", {"$set": {"companyId": "secret words"}}),
    ("identities", {"$set": {"subjectId": ["secret words"]}}),
    ("messages", {"$set": {"customerId": {"secret words": 1}}}),
    ("personalRecords", {"$set": {"witemId": "secret words", "customerId": 7}}),
]


@pytest.mark.parametrize("first", range(2))
async def test_wrong_types_are_one_line_each_without_values(
    ctx: Context, restored: Restored, capfd: pytest.CaptureFixture[str], first: int
) -> None:
    """Six documents are damaged at a time: all checks of the demo company take a second."""
    damaged = DAMAGED[first::2]
    for collection, change in damaged:
        await restored.change(collection, {}, change)
    results = await check(ctx.services)
    assert sum(bool(result.problems or result.error) for result in results) >= len(damaged)
    _print(results)
    said = "".join(capfd.readouterr())
    said += "".join(str(finding) for result in results for finding in result.findings)
    assert "Traceback" not in said
    assert "secret words" not in said


async def test_missing_indexes_are_one_line_each(ctx: Context, capfd: pytest.CaptureFixture[str]) -> None:
    indexes = [
        ("workoutBlocks", "companyId_customerId_items__id"),
        ("fs.chunks", "files_id_n"),
        ("jobs", "kind_runAfter"),
    ]
    for collection, name in indexes:
        await ctx.db[collection].drop_index(name)
    results = await check(ctx.services)
    _print(results)
    assert "Traceback" not in "".join(capfd.readouterr())
    errors = {result.error for result in results if result.error is not None}
    assert errors == {"An index is missing: the check of indexes names it, and doctor --repair creates it"}
    [repaired] = await check(ctx.services, results[0].check.name, repairing=True)
    assert repaired.repaired
    without_index = [result.check.name for result in results if result.error]
    assert [result.error for result in await check(ctx.services, *without_index) if result.error] == []
