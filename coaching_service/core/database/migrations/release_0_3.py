"""What version 0.3 changes. The docstring of a step says what the stored documents are like afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coaching_service.core.auth import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.database.documents import now
from coaching_service.core.ids import stable_id

# --- How a step of migrations is declared, and changes that several of them make --------------------------------------


Apply = Callable[[Database, Vault], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """One change of stored documents. `number` decides the order; neither it nor the name of the function changes.

    `release` is the minor version that brings it, such as "0.3". Another patch version of the same minor version may
    serve the changed documents, an earlier minor version may not: see docs/upgrading.md.
    """

    number: int
    apply: Apply
    release: str

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.apply.__name__

    @property
    def description(self) -> str:
        """What the stored documents are like afterwards: the first paragraph of the docstring, in one line."""
        return " ".join((self.apply.__doc__ or "").partition("\n\n")[0].split())


@dataclass(frozen=True)
class Release:
    """The steps of a minor version."""

    version: str
    steps: list[Step] = field(default_factory=list)

    def step(self, number: int) -> Callable[[Apply], Apply]:
        """Return the decorator that declares a step."""

        def declare(apply: Apply) -> Apply:
            self.steps.append(Step(number, apply, self.version))
            return apply

        return declare


async def set_missing(db: Database, collection: str, fields: Mapping[str, Any]) -> None:
    """Set each of the fields in the documents that lack it."""
    for name, value in fields.items():
        await db[collection].update_many({name: {"$exists": False}}, {"$set": {name: value}})


async def drop_indexes(db: Database, collection: str, *names: str) -> None:
    """Drop those indexes of a collection that it has."""
    if collection in await db.list_collection_names():
        for name in (await db[collection].index_information()).keys() & set(names):
            await db[collection].drop_index(name)


release = Release("0.3")


_RENEWAL = ("renew_training_load", {"last": None, "exerciseId": None})


async def _queue(db: Database, reason: str, kind: str, arguments: Mapping[str, Any]) -> None:
    """Queue a job that works through all clients, once for each company and reason."""
    async for company in db["companies"].find({}, {"_id": 1}):
        at = now()
        job = {
            "companyId": company["_id"],
            "about": None,
            "kind": kind,
            "arguments": arguments,
            "runAfter": at,
            "attempts": 0,
            "lease": None,
            "createdAt": at,
        }
        identifier = stable_id(reason, str(company["_id"]))
        await db["jobs"].update_one({"_id": identifier}, {"$setOnInsert": job}, upsert=True)


# Not for a patch version of 0.2: its code does not know the new types of records.
@release.step(17)
async def training_load(db: Database, _: Vault) -> None:
    """A background job of each company computes totals, best sets and personal records of logs again.

    Loads of assisted machines are no volume, repetitions in reserve count in estimates, times and distances are
    records.
    """
    await _queue(db, "renew_training_load", *_RENEWAL)


@release.step(18)
async def clients_may_import(db: Database, _: Vault) -> None:
    """Companies have `clientsMayImport`: whether clients may import their own training history."""
    await set_missing(db, "companies", {"clientsMayImport": True})


@release.step(19)
async def key_outreach(db: Database, _: Vault) -> None:
    """API keys have `restrictions.outreach`: whether an assistant with the key may contact people and change many
    clients.

    Keys made before may, as they could.
    """
    await set_missing(db, "apiKeys", {"restrictions.outreach": True})


@release.step(20)
async def confirm_in_chat(db: Database, _: Vault) -> None:
    """API keys and connected assistants have `confirmInChat`: whether an assistant may confirm calls itself, within
    limits.

    Those made before may not: their calls wait for the coach's approval.
    """
    await set_missing(db, "apiKeys", {"restrictions.confirmInChat": False})
    await set_missing(db, "assistantGrants", {"confirmInChat": False})


@release.step(21)
async def jobs_of_clients(db: Database, _: Vault) -> None:
    """Jobs of a company have a unique index on kind and client: clients import their history at the same time."""
    await drop_indexes(db, "companyJobs", "companyId_kind")


@release.step(22)
async def clients_may_move(db: Database, _: Vault) -> None:
    """Companies have `clientsMayMove` and `clientsMayAdd`: whether clients may move workouts, and add workouts."""
    await set_missing(db, "companies", {"clientsMayMove": True, "clientsMayAdd": True})


@release.step(23)
async def pending_changes(db: Database, _: Vault) -> None:
    """Changes without a number have an index; no position in their stream is stored, and no time of the latest one."""
    await drop_indexes(db, "changes", "createdAt")
    await db.drop_collection("sequencer")


@release.step(24)
async def body_weights(db: Database, _: Vault) -> None:
    """A background job of each company copies body weights from metrics, and computes logs and records again.

    Estimates of pull-ups and dips are of the whole weight.
    """
    await _queue(db, "body weights", *_RENEWAL)


@release.step(25)
async def rate_limits(db: Database, _: Vault) -> None:
    """Attempts and tokens of limits are stored in one collection, `rateLimits`; those counted before are forgotten."""
    await db.drop_collection("rateCounters")
    await db.drop_collection("tokenBuckets")


@release.step(26)
async def one_collection_of_jobs(db: Database, _: Vault) -> None:
    """Bulk operations and undos of changes are jobs of a company, as imports are: `bulkJobs` is gone."""
    await drop_indexes(db, "companyJobs", "companyId_kind_customerId")
    async for job in db["bulkJobs"].find({}):
        requested = {"requestedBy": job.pop("coachId"), "caller": job["work"].pop("caller"), "customerId": None}
        await db["companyJobs"].replace_one({"_id": job["_id"]}, {**job, **requested}, upsert=True)
    await db.drop_collection("bulkJobs")


@release.step(27)
async def search_texts(db: Database, _: Vault) -> None:
    """A background job of each company indexes the words of its texts, by which they are found."""
    await _queue(db, "search texts", "index_texts", {"last": None})


@release.step(28)
async def require_second_factor(db: Database, _: Vault) -> None:
    """Companies have `requireSecondFactor`: whether the sessions of coaches need a second factor."""
    await set_missing(db, "companies", {"requireSecondFactor": False})


_ACTIONS_BEFORE = {
    "apiKey.revealed": "key.revealed",
    "apiKey.revoked": "key.deleted",
    "assistant.granted": "assistant.allowed",
    "calendarLink.issued": "calendar_link.created",
    "calendarLink.revoked": "calendar_link.deleted",
    "company.importBegun": "import.started",
    "company.importUndone": "import.undone",
    "company.jobCancelled": "job.cancelled",
    "company.loadUnitConversionBegun": "load_unit.conversion_started",
    "company.loadUnitConverted": "load_unit.converted",
    "customer.impersonated": "client.impersonated",
    "customer.password_set": "client.password_set",
    "pushSubscription.created": "push_subscription.created",
    "pushSubscription.deleted": "push_subscription.deleted",
    "webhook.secretRotated": "webhook.secret_rotated",
}
_AUDIT_TARGETS = ("keyId", "webhookId", "grantId", "proposalId", "jobId", "sandboxId", "subjectId")


@release.step(29)
async def audit_log(db: Database, _: Vault) -> None:
    """Entries of the audit log have `actor`, `customerId`, `target`, `count`, and `until`, 400 days later."""
    for before, after in _ACTIONS_BEFORE.items():
        await db["audit"].update_many({"action": before}, {"$set": {"action": after}})
    roles = [
        {"case": {"$eq": ["$about", "$actorId"]}, "then": ["client", "client"]},
        {"case": {"$eq": ["$via", "apiKey"]}, "then": ["key", "apiKey"]},
        {"case": {"$eq": ["$via", "mcp"]}, "then": ["assistant", "assistant"]},
        {"case": {"$eq": ["$via", "application"]}, "then": ["application", "application"]},
    ]
    role = {"$switch": {"branches": roles, "default": ["coach", "session"]}}
    name = {"$ifNull": ["$clientName", None]}
    named = [f"${each}" for each in (*_AUDIT_TARGETS, "about")]
    target = {"kind": {"$first": {"$split": ["$action", "."]}}, "_id": {"$ifNull": [*named, None]}, "name": name}
    fields = {
        "actor": {"type": {"$first": role}, "_id": "$actorId", "name": ""},
        "via": {"$last": role},
        "count": 1,
        "customerId": {"$ifNull": ["$about", None]},
        "target": target,
        "address": None,
        "until": {"$dateAdd": {"startDate": "$createdAt", "unit": "day", "amount": 400}},
    }
    gone = ("actorId", "about", "clientName", "isDryRun", "kind", *_AUDIT_TARGETS)
    await db["audit"].update_many({"actor": {"$exists": False}}, [{"$set": fields}, {"$unset": list(gone)}])
    await drop_indexes(db, "audit", "companyId_createdAt", "companyId_about")


@release.step(30)
async def whom_keys_act_as(db: Database, _: Vault) -> None:
    """API keys and webhooks say whether they are of a coach, or of the company or an application."""
    await set_missing(db, "apiKeys", {"actsAs": "coach", "permissions": None, "customersScope": None})
    await set_missing(db, "webhooks", {"allCompanies": False})
