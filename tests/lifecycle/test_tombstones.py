"""The list of erasures outside of the database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bson import ObjectId

from coaching_service.core.database.documents import now
from coaching_service.core.errors import Unavailable
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.installation.backup.stores import BackupError, FolderStore, Store
from coaching_service.lifecycle import erasure
from coaching_service.lifecycle.administration import Operator
from coaching_service.lifecycle.erasure import Tombstone, repeat_erasures
from coaching_service.people import account
from tests.support.client import CoachClient

JOB = Job(ObjectId(), {}, 1)


def ignore(_: int) -> None:
    """Report nothing."""


def erased_of(coach: CoachClient, store: Store) -> list[set[str]]:
    """The clients of each tombstone of the company in a store, oldest first."""
    of_company = [each for each in erasure.read_stored(store) if each["erasedCompanyId"] == coach.ctx.company_id]
    return [
        {str(customer) for customer in each["erasedCustomerIds"]}
        for each in sorted(of_company, key=lambda each: each["_id"])
    ]


async def test_erasures_are_written_to_the_store(coach: CoachClient, tmp_path: Path) -> None:
    """Of one client, of several, and of the company, each once."""
    store = FolderStore(tmp_path / "store")
    services = replace(coach.ctx.services, backup_store=store)
    clients = [(await coach.create_customer())["_id"] for _ in range(3)]
    (await coach.delete(f"/coach/customers/{clients[0]}")).ok(204)
    assert await erasure.store_step(services, JOB) == RunAgain(erasure._PAUSE)
    assert erased_of(coach, store) == [{clients[0]}]

    (await coach.post("/coach/customers/bulk/delete", {"ids": clients[1:]})).ok()
    await account.delete(coach.ctx)
    await erasure.store_step(services, JOB)
    assert erased_of(coach, store) == [{clients[0]}, set(clients[1:]), set()]
    assert await erasure.write_new(services, store) == 0
    other = FolderStore(tmp_path / "other")
    await erasure.write_missing(services, other)
    assert erased_of(coach, other) == erased_of(coach, store)
    assert (
        "companyId"
        in (tmp_path / "store" / "erasures").joinpath(f"{erasure.read_stored(store)[0]['_id']}.json").read_text()
    )


async def test_erasure_does_not_wait_for_a_store_that_fails(
    coach: CoachClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again, and the error is no traceback."""
    store = FolderStore(tmp_path / "store")
    services = replace(coach.ctx.services, backup_store=store)
    client = (await coach.create_customer())["_id"]
    (await coach.delete(f"/coach/customers/{client}")).ok(204)

    def refuse(*_: object) -> None:
        raise BackupError("the bucket is gone")

    with monkeypatch.context() as patch:
        patch.setattr(FolderStore, "write", refuse)
        with pytest.raises(Unavailable, match="the bucket is gone"):
            await erasure.store_step(services, JOB)
    await erasure.store_step(services, JOB)
    assert erased_of(coach, store) == [{client}]


async def test_only_what_the_database_does_not_know_is_erased_again(coach: CoachClient) -> None:
    """A restored database is older than the list; a client whose erasure it has is not touched again."""
    restored, other = [(await coach.create_customer())["_id"] for _ in range(2)]
    (await coach.put("/coach/customers/archive", {"id": other})).ok()
    announced = {"_id": ObjectId(other), "erasureDueAt": now()}
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(other)}, {"$set": announced})
    listed: list[Tombstone] = [
        {
            "_id": ObjectId(),
            "erasedCompanyId": company,
            "erasedCustomerIds": customers,
            "erasedAt": now(),
            "storedAt": None,
        }
        for company, customers in (
            (coach.ctx.company_id, [ObjectId(restored), ObjectId()]),
            (ObjectId(), []),
            (ObjectId(), [ObjectId(other)]),
        )
    ]
    operator, reported = Operator(coach.ctx.services, "olga"), list[int]()
    assert await repeat_erasures(operator, listed, reported.append) == (1, 0)
    assert sum(reported) == 3
    (await coach.get(f"/coach/customers/{restored}")).refused(404)
    (await coach.get(f"/coach/customers/{other}")).ok()
    assert await coach.ctx.db["customers"].find_one(announced) is None, "the owner may have restored the client since"
    assert await repeat_erasures(operator, listed, ignore) == (0, 0)
