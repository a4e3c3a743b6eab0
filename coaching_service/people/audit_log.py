"""The audit log as owners read it, and who has looked at or changed the data of a client, for that client."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, TypedDict, cast

from marshmallow import fields

from coaching_service.core import audit
from coaching_service.core.auth import customer, owner_session
from coaching_service.core.changes import history
from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.database import recording
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.fields import Description, output_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListPart, PartQuery
from coaching_service.core.text import write_rows
from coaching_service.people import account, team
from coaching_service.people.customers import service as customers

# --- Entries as they are asked for and returned -----------------------------------------------------------------------


# `from` is a keyword of Python, so the type has the functional form.
_Times = TypedDict(
    "_Times",
    {
        "from": Annotated[datetime | None, Description("Entries of this time or later.")],
        "to": Annotated[datetime | None, Description("Entries of this time or earlier.")],
    },
)


class AuditQuery(PartQuery, _Times):
    """Filters of the audit log; they combine with AND."""

    customerId: Annotated[ObjectId | None, Description("Entries about this client.")]
    actorId: Annotated[ObjectId | None, Description("Entries about what this coach or client did.")]
    action: Annotated[audit.AuditAction | None, Description("Entries of this action.")]


class AuditRecord(TypedDict):
    """What someone did, or how often one actor has read one kind of data within an hour."""

    _id: ObjectId
    at: Annotated[datetime, Description("When it was done; of reads, when the first one was.")]
    actor: Annotated[
        recording.Actor,
        fields.Nested(output_of(recording.Actor, first=("type",))),
        Description("Who did it; of a failed sign-in, whose account it was. `name` is empty if that is not known."),
    ]
    via: Annotated[recording.Interface, Description("The interface.")]
    action: Annotated[audit.AuditAction, Description("What was done: docs/audit-log.md describes each action.")]
    count: Annotated[int, Description("How often; 1 except for reads.")]
    customerId: Annotated[ObjectId | None, Description("The client it concerns; null for lists and the company.")]
    target: Annotated[audit.AuditTarget, Description("What it was done to.")]
    address: Annotated[str | None, Description("The network address; null for background work.")]
    requestId: Annotated[str, Description("The `X-Request-Id` of the request; of reads, of the first one.")]


class AuditPage(TypedDict):
    """Entries of the audit log, newest first."""

    docs: list[AuditRecord]
    nextCursor: Annotated[str | None, Description("Where to continue; null at the end.")]
    hasMore: Annotated[bool, Description("Whether there are older entries.")]


class Reader(TypedDict):
    """Who of the company, or which assistant or application."""

    type: Annotated[recording.ActorType, Description("In which role.")]
    name: Annotated[str, Description("The name of the coach, or of the assistant or application.")]


class ClientAccess(TypedDict):
    """How often someone has looked at or changed the data of a client on one day."""

    date: Annotated[str, fields.String(), Description("The day, where the client is.")]
    actor: Reader
    reads: Annotated[int, Description("How often the data was read.")]
    changes: Annotated[int, Description("How many changes were made.")]


# --- Storing what is collected in memory ------------------------------------------------------------------------------


async def store_pending(services: Services) -> None:
    """Store what was noted since the last time; what cannot be stored is kept for the next time.

    Left out is what concerns clients and companies who have been erased, or do not exist.
    """
    async with services.pending_entries.storing:
        if not (taken := services.pending_entries.take()):
            return
        try:
            ids = {each["customerId"] for each in taken.values() if each["customerId"] is not None}
            company_of = await customers.find_companies(services, ids)
            companies = set(await account.find_existing(services, list({each["companyId"] for each in taken.values()})))
            known = [
                each
                for each in taken.values()
                if each["companyId"] in companies
                and (each["customerId"] is None or company_of.get(each["customerId"]) == each["companyId"])
            ]
            await audit.store_entries(services, known)
        except BaseException:
            services.pending_entries.put_back(taken)
            raise


# --- Reading the log --------------------------------------------------------------------------------------------------


def _present(entry: audit.AuditEntry, names: Mapping[ObjectId, str]) -> AuditRecord:
    actor, target, customer_id = entry["actor"], entry["target"], entry["customerId"]
    if not actor["name"] and actor["_id"] is not None:
        actor = {**actor, "name": names.get(actor["_id"], "")}
    if target["_id"] is None and customer_id is not None:
        target = {**target, "_id": customer_id}
    if target["name"] is None and target["_id"] is not None:
        target = {**target, "name": names.get(target["_id"])}
    return {
        "_id": entry["_id"],
        "at": entry["createdAt"],
        "actor": actor,
        "via": entry["via"],
        "action": entry["action"],
        "count": entry["count"],
        "customerId": customer_id,
        "target": target,
        "address": entry["address"],
        "requestId": entry["requestId"],
    }


async def iterate_entries(ctx: Context, query: AuditQuery | None = None) -> AsyncIterator[AuditRecord]:
    """Yield all entries of the company that match the filters, newest first."""
    filters = query or cast("AuditQuery", dict.fromkeys(AuditQuery.__annotations__))
    after: str | None = None
    while True:
        page = await list_audit_entries(ctx, {**filters, "limit": 100, "after": after})
        for entry in page["docs"]:
            yield entry
        if (after := page["nextCursor"]) is None:
            return


_COLUMNS = (
    "at",
    "action",
    "actor",
    "actorType",
    "via",
    "count",
    "kind",
    "target",
    "customerId",
    "address",
    "requestId",
)


def to_csv(ctx: Context, query: AuditQuery) -> Download:
    """Return the entries that match the filters as a table."""

    async def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        yield write_rows([_COLUMNS])
        async for entry in iterate_entries(ctx, query):
            actor, target = entry["actor"], entry["target"]
            who = (entry["action"], actor["name"], actor["type"], entry["via"], entry["count"])
            what = (target["kind"], target["name"] or target["_id"] or "", entry["customerId"] or "")
            time = f"{entry['at']:%Y-%m-%dT%H:%M:%SZ}"
            yield write_rows([(time, *who, *what, entry["address"] or "", entry["requestId"])])

    return Download("text/csv; charset=utf-8", f"audit-log-{now():%Y-%m-%d}.csv", read_all)


# --- Who has looked ---------------------------------------------------------------------------------------------------


async def list_access(ctx: Context, customer_id: ObjectId) -> list[ClientAccess]:
    """Return who has read or changed the data of a client, by day, the newest first. Raises what get_visible raises.

    Reads are known as long as entries of the audit log are kept, and changes of the same time are returned.
    """
    client = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    timezone = client["timezone"] or ctx.caller.company.timezone
    since = now() - timedelta(days=ctx.services.audit_days)
    reads = await audit.count_reads_by_day(ctx, customer_id, since, timezone)
    changes = await history.count_by_day(ctx, customer_id, since, timezone)
    applications = await audit.find_application_names(ctx, [each["_id"]["credentialId"] for each in (*reads, *changes)])
    coaches: dict[ObjectId | None, str] = {each["_id"]: each["name"] for each in await team.list_coaches(ctx)}
    counts: dict[str, Counter[tuple[str, recording.ActorType, str]]] = {"reads": Counter(), "changes": Counter()}
    for name, counted in (("reads", reads), ("changes", changes)):
        for each in counted:
            actor, credential = each["_id"]["actor"], each["_id"]["credentialId"]
            shown = actor["name"] or coaches.get(actor["_id"], "")
            if actor["type"] in ("assistant", "application"):
                shown = applications.get(credential, shown) if credential else shown
            counts[name][each["_id"]["date"], actor["type"], shown] += each["count"]
    days = sorted({*counts["reads"], *counts["changes"]}, key=lambda key: (key[0], key[2], key[1]), reverse=True)
    return [
        {
            "date": key[0],
            "actor": {"type": key[1], "name": key[2]},
            "reads": counts["reads"][key],
            "changes": counts["changes"][key],
        }
        for key in days
    ]


# --- Actions that follow from changes ---------------------------------------------------------------------------------


async def record_changed_clients(ctx: Context, event: DocumentsWritten) -> None:
    """Store which clients were archived, unarchived or erased, whichever operation did it.

    What is left of a client who was erased is the identifier alone.
    """
    done: list[tuple[audit.AuditAction, ObjectId | None, str | None, ObjectId | None]] = []
    for document in event.documents:
        if document.collection != "customers":
            continue
        if document.action == "deleted":
            done.append(("client.erased", document.id, None, None))
        elif document.action == "changed" and customers.ARCHIVED in document.values:
            before, after = document.values[customers.ARCHIVED]
            if before is not after:
                done.append(("client.archived" if after else "client.unarchived", document.id, None, document.id))
    await audit.record_each(ctx, done)


# --- The audit log over REST ------------------------------------------------------------------------------------------


routes = Routes("/coach/audit", tag="Audit log")
own_routes = Routes("/customer/access", tag="The client's own")


@routes.get("", access=owner_session())
async def list_audit_entries(ctx: Context, query: AuditQuery) -> AuditPage:
    """List who did what, newest first.

    Sign-ins, keys, the team, exports, connected applications and other sensitive actions, and who has read the data of
    clients. Reads of one kind by one actor within an hour are one entry with their number. An entry appears within
    ten seconds, contains no values, and is kept for the time that the operator has set, by default 400 days.
    """
    # Raises InvalidFields for a text that is not a cursor.
    filters: Filter = {
        "customerId": query["customerId"],
        "actor._id": query["actorId"],
        "action": query["action"],
        "createdAt": {"$gte": query["from"], "$lte": query["to"]},
    }
    times = {operator: at for operator, at in filters.pop("createdAt").items() if at is not None}
    where = {name: value for name, value in filters.items() if value is not None}
    part = ListPart(ctx, "audit", {**filters, **times}, audit.NEWEST_FIRST, size=query["limit"], after=query["after"])
    conditions = [where, {"createdAt": times} if times else {}, part.condition()]
    stored = await audit.list_newest(ctx, {"$and": [each for each in conditions if each] or [{}]}, part.limit)
    # Entries mention coaches and clients by their identifiers alone.
    clients = {each["customerId"] for each in stored if each["customerId"] is not None}
    names = {each["_id"]: each["name"] for each in (await customers.find_references(ctx, list(clients))).values()}
    if any(not each["actor"]["name"] for each in stored):
        names |= {each["_id"]: each["name"] for each in await team.list_coaches(ctx)}
    return part.by_cursor(stored, lambda entry: _present(entry, names))


@own_routes.get("", access=customer())
async def list_own_access(ctx: Context) -> list[ClientAccess]:
    """List who has looked at or changed my data, by day, newest first."""
    return await list_access(ctx, ctx.caller.id)
