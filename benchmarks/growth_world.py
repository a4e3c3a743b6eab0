"""The data of `benchmarks.growth`: companies of each size, and many small ones like the demo company."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pymongo.write_concern import WriteConcern
from rich.progress import Progress

from coaching_service import demo, features
from coaching_service.core.database.context import Collection, Context, Services
from coaching_service.core.database.declared import BY_COMPANY
from coaching_service.core.database.documents import now, registry
from coaching_service.core.ids import ObjectId
from coaching_service.installation.indexes import ensure_indexes
from coaching_service.people import api_keys, team
from coaching_service.people.customers import batch as creation
from coaching_service.people.customers import counters
from coaching_service.people.customers.store import customers
from coaching_service.seeding import build_client

assert features.ROUTES  # all collections are declared
BATCH = 2_000
MOST_CHANGES = 100_000  # of a company: a page of events costs the same with more
MOST_COPIED = 60  # documents of each collection of the demo company, in each small company
_NOT_COPIED = ("fs.files", "replays", "changeCounters", "changeNumbers")
_NUMBERED = 500  # changes that the sequencer numbers at one time at most
_NEVER = timedelta(days=3650)  # nothing renews figures while the requests are measured
_ATTENTION_SHARE = 0.2
_FILLED = ("customers", "changes")


@dataclass(frozen=True)
class GrownCompany:
    """A company with `clients`, of which nine in ten are active; `rare` is in the e-mail address of one of them."""

    clients: int
    key: str
    rare: str


def unacknowledged(services: Services, name: str) -> Collection:
    """A collection whose inserts do not wait for the disk."""
    return services.db[name].with_options(write_concern=WriteConcern(w=1, j=False))


async def grow_companies(services: Services, sizes: Sequence[int], progress: Progress) -> list[GrownCompany]:
    """Store a company with so many clients and changes for each of `sizes`; returns them with their keys.

    The indexes of clients and changes are made after the data, which takes a fraction of the time.
    """
    started = [(size, await _start_company(services, size)) for size in sizes]
    for name in _FILLED:
        await services.db[name].drop_indexes()
    rare = [await _fill(services, ctx, size, progress) for size, ctx in started]
    task = progress.add_task("Indexes", total=len(_FILLED))
    for name in _FILLED:
        await ensure_indexes(services.db, {name: registry[name].indexes})
        progress.advance(task)
    return [
        GrownCompany(size, str((await api_keys.create(ctx, "Bench"))["key"]), text)
        for (size, ctx), text in zip(started, rare, strict=True)
    ]


async def _start_company(services: Services, clients: int) -> Context:
    """Create a company with one client, whose change is copied; returns a context of its owner."""
    owner = await team.create_company(
        Context(services), f"Company of {clients:,}", "Olga", f"owner{clients}@example.com", "no hash"
    )
    ctx = Context(services).acting_as(owner)
    await creation.create_customer(ctx, {"name": "First"})
    return ctx


async def _fill(services: Services, ctx: Context, clients: int, progress: Progress) -> str:
    """Store so many clients, with changes, some thousands at a time; returns a text that only one of them contains."""
    trainer = (ctx.caller.id,)
    task = progress.add_task(f"{clients:,} clients", total=clients)
    chance, target = random.Random(clients), unacknowledged(services, "customers")
    rare, ids = "", []
    for first in range(0, clients, BATCH):
        batch = [build_client(chance, number, clients, trainer) for number in range(first, min(first + BATCH, clients))]
        documents = [customers.with_metadata(ctx, {**each, **_figures(chance)}) for each in batch]
        await target.insert_many(documents, ordered=False)
        await counters.count(ctx, batch, 1)
        if first <= clients // 2 < first + BATCH:
            rare = str(batch[clients // 2 - first]["email"])
        ids += [each["_id"] for each in documents[: MOST_CHANGES - len(ids)]]
        progress.advance(task, len(batch))
    await _copy_change(services, ctx.company_id, ids)
    return rare


def _figures(chance: random.Random) -> dict[str, Any]:
    """Figures that stay valid; a fifth of the clients need attention."""
    reasons = [{"type": "inactive", "since": now(), "count": 1}] if chance.random() < _ATTENTION_SHARE else []
    score = chance.randint(1, 100) if reasons else 0
    return {"figuresUntil": now() + _NEVER, "attention": {"score": score, "reasons": reasons, "dismissed": []}}


async def _copy_change(services: Services, company: ObjectId, clients: list[ObjectId]) -> None:
    """Store a numbered change for each of the clients, like the only one of the company."""
    changes = unacknowledged(services, "changes")
    change = await changes.find_one({"companyId": company}) or {}
    await changes.delete_one({"_id": change["_id"]})
    pending = {name: value for name, value in change.items() if name != "pending"}
    for first in range(0, len(clients), BATCH):
        numbered = [
            {**pending, "_id": ObjectId(), "customerId": client, "seq": number, "lastSeq": number, "eventCount": 1}
            for number, client in enumerate(clients[first : first + BATCH], start=first + 1)
        ]
        await changes.insert_many(numbered, ordered=False)
        named = [{"_id": each["_id"], "lastSeq": each["lastSeq"]} for each in numbered]
        parts = [named[at : at + _NUMBERED] for at in range(0, len(named), _NUMBERED)]
        await services.db["changeNumbers"].insert_many(
            [{"companyId": company, "numberedAt": now(), **_numbers(part)} for part in parts]
        )
    counter = {"companyId": company, "lastSeq": len(clients)}
    await services.db["changeCounters"].replace_one({"_id": company}, counter, upsert=True)


def _numbers(named: list[dict[str, Any]]) -> dict[str, Any]:
    return {"first": named[0]["lastSeq"], "last": named[-1]["lastSeq"], "changes": named}


async def copy_demo(services: Services, companies: int, progress: Progress) -> None:
    """Store so many copies of the coaching data of the demo company, under other identifiers."""
    facts = await demo.ensure_demo(services, lambda _: None)
    origin = ObjectId(str(facts["companyId"]))
    shared = {each["_id"] async for each in services.db["exercises"].find({"companyId": None}, {"_id": 1})}
    names = [name for name, each in registry.items() if each.placement == BY_COMPANY]
    templates = {
        name: await services.db[name].find({"companyId": origin}).limit(MOST_COPIED).to_list(None)
        for name in names
        if name not in _NOT_COPIED
    }
    task = progress.add_task(f"{companies:,} small companies", total=companies)
    for number in range(1, companies + 1):
        for name, documents in templates.items():
            if documents:
                copies = [_copy(document, number, shared) for document in documents]
                await unacknowledged(services, name).insert_many(copies, ordered=False)
        progress.advance(task)


def _copy(value: Any, number: int, shared: set[ObjectId]) -> Any:
    """A copy with other identifiers, the same for the same ones; those of `shared` documents stay."""
    if isinstance(value, dict):
        fixed = {"figuresUntil": now() + _NEVER} if "figuresUntil" in value else {}
        return {key: _copy(each, number, shared) for key, each in value.items() if key != "pending"} | fixed
    if isinstance(value, list):
        return [_copy(each, number, shared) for each in value]
    if isinstance(value, ObjectId) and value not in shared:
        of_process = int.from_bytes(value.binary[4:9], "big") ^ number
        return ObjectId(value.binary[:4] + of_process.to_bytes(5, "big") + value.binary[9:])
    return value


@dataclass(frozen=True)
class Stored:
    """The documents of a collection, their bytes, and those of its indexes and of both on disk."""

    collection: str
    documents: int
    bytes: int
    index_bytes: int
    disk_bytes: int


async def measure_collections(services: Services) -> list[Stored]:
    """Return what is stored, by collection, as the database counts it after a checkpoint."""
    await services.db.client.admin.command("fsync")
    return [each async for each in _statistics(services)]


async def _statistics(services: Services) -> AsyncIterator[Stored]:
    for name in sorted(registry):
        statistics = await services.db.command("collStats", name)
        if statistics["count"]:
            yield Stored(
                name, statistics["count"], statistics["size"], statistics["totalIndexSize"], statistics["storageSize"]
            )


def sizes_up_to(largest: int) -> Iterator[int]:
    """1,000, and ten times as many each time, up to `largest`."""
    size = 1_000
    while size <= largest:
        yield size
        size *= 10
