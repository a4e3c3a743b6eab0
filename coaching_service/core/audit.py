"""The audit log: sensitive actions and who performed them, and who has read the data of clients.

Actions are stored in the transaction of the change; reads are collected in memory and stored together.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, cast

from coaching_service.core.auth import Principal
from coaching_service.core.database import recording
from coaching_service.core.database.across_companies import insert_or_count
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId, stable_id

AuditAction = Literal[
    "sign_in.succeeded",
    "sign_in.failed",
    "second_factor.enabled",
    "second_factor.disabled",
    "passkey.added",
    "passkey.removed",
    "password.changed",
    "key.created",
    "key.revealed",
    "key.deleted",
    "employee.created",
    "employee.removed",
    "permissions.changed",
    "account.changed",
    "client.read",
    "list.read",
    "client.exported",
    "client.archived",
    "client.unarchived",
    "client.erased",
    "client.password_set",
    "client.impersonated",
    "company.exported",
    "import.started",
    "import.undone",
    "job.cancelled",
    "load_unit.conversion_started",
    "load_unit.converted",
    "sandbox.created",
    "calendar_link.created",
    "calendar_link.deleted",
    "push_subscription.created",
    "push_subscription.deleted",
    "webhook.created",
    "webhook.changed",
    "webhook.secret_rotated",
    "webhook.deleted",
    "assistant.allowed",
    "assistant.revoked",
    "application.allowed",
    "application.revoked",
    "application.registered",
    "application.secret_rotated",
    "application.deleted",
    "proposal.approved",
    "proposal.rejected",
]
_MAX_DEVICE, _SIGN_INS, _HOUR_SECONDS = 300, 20, 3600


class AuditTarget(TypedDict):
    """What was acted on; of a read, `kind` is what of a client's record was read."""

    kind: Annotated[str, Description("What kind it is; of a read, what was read, such as `notes`.")]
    _id: Annotated[ObjectId | None, Description("Its identifier; of a read, the client.")]
    name: Annotated[str | None, Description("Its name, if it has one and it is known.")]


class NewAuditEntry(TypedDict):
    """An action and its actor, or the reads of one kind within an hour; `customerId` is the client it concerns.

    `address` is the network address, `device` the program of a sign-in. `until` is when the entry is deleted. The name
    of an actor is empty where it was not known.
    """

    action: AuditAction
    actor: recording.Actor
    via: recording.Interface
    count: int
    customerId: ObjectId | None
    target: AuditTarget
    address: str | None
    requestId: str
    credentialId: ObjectId | None
    device: NotRequired[str]
    until: datetime


class AuditEntry(NewAuditEntry, Stored):
    """A stored entry."""


_entries = Documents[AuditEntry](
    "audit",
    (
        Index(("createdAt", "_id")),
        Index(("customerId", "createdAt", "_id")),
        Index(("actor._id", "createdAt", "_id")),
        Index(("action", "createdAt", "_id")),
    ),
    private=("companyId", "credentialId", "until"),
    client_field="customerId",
    transfer=NotExported("exported as audit.jsonl, to be read by people: an import leaves it out"),
    global_indexes=(Index(("until",), expire_after=0),),
    cross_company_reason="reads of all companies are stored together",
    incidental=True,
)
NEWEST_FIRST = ("-createdAt", "-_id")


class OperatorAction(TypedDict):
    """An action of the operator: `operator` is the name of the operating system's user, `subjectId` what it concerns.

    Further fields depend on the action.
    """

    _id: ObjectId
    action: str
    operator: str
    subjectId: ObjectId | None
    createdAt: datetime


_operator_actions = Documents[OperatorAction](
    "operatorActions",
    private=(),
    global_indexes=(Index(("createdAt", "_id")),),
    cross_company_reason="the operator acts on all companies, and the log of it outlives their data",
    placement=Unsharded("few documents, which the operator lists"),
    transfer=NotExported("the log of the operator"),
)


async def record_operator(
    ctx: Context, operator: str, action: str, subject_id: ObjectId | None = None, **facts: Any
) -> None:
    """Store that the operator did `action`, such as `company.suspended`, in the transaction of `ctx`, if any.

    It has no personal data but the name of the operator, because it is not erased with a company.
    """
    entry = {"_id": ObjectId(), "action": action, "operator": operator, "subjectId": subject_id, "createdAt": now()}
    await _operator_actions.across_companies(ctx.services).insert_one({**entry, **facts}, session=ctx.session)


async def iterate_operator_actions(services: Services, limit: int) -> AsyncIterator[OperatorAction]:
    """Yield the last actions of the operator, newest first."""
    cursor = _operator_actions.across_companies(services).find({}, sort=[("createdAt", -1), ("_id", -1)], limit=limit)
    async for entry in cursor:
        yield cast("OperatorAction", entry)


async def find_last_operator_action(services: Services, action: str) -> OperatorAction | None:
    """Return the last time that the operator did `action`, or None."""
    actions = _operator_actions.across_companies(services)
    last = await actions.find_one({"action": action}, sort=[("createdAt", -1), ("_id", -1)])
    return cast("OperatorAction | None", last)


# --- Actions ---------------------------------------------------------------------------------------------------------


async def record(
    ctx: Context,
    action: AuditAction,
    target_id: ObjectId | None = None,
    name: str | None = None,
    *,
    customer_id: ObjectId | None = None,
) -> None:
    """Store that the caller did `action` to a target; `customer_id` is the client it concerns, if any."""
    await record_each(ctx, [(action, target_id, name, customer_id)])


def own_client(user: Principal) -> ObjectId | None:
    """Return the client that a user is; None of a coach."""
    return None if user.is_coach else user.id


async def record_each(
    ctx: Context, done: Iterable[tuple[AuditAction, ObjectId | None, str | None, ObjectId | None]]
) -> None:
    """Store what the caller did, as `record` does: each action, its target with a name, and the client."""
    entries: list[NewAuditEntry] = []
    for action, target_id, name, customer_id in done:
        target: AuditTarget = {"kind": action.partition(".")[0], "_id": target_id, "name": name}
        entries.append(_entry_of(ctx, action, target, customer_id))
        if customer_id is not None:
            ctx.clients_seen.ids.discard(customer_id)  # it says more than that something was read
    if entries:
        await _entries.insert_many(ctx, entries)


def _entry_of(ctx: Context, action: AuditAction, target: AuditTarget, customer_id: ObjectId | None) -> NewAuditEntry:
    return {
        "actor": recording.actor_of(ctx),
        "via": recording.interface_of(ctx),
        "count": 1,
        "address": ctx.network_address if ctx.network_address != "-" else None,
        "requestId": ctx.request_id,
        "credentialId": ctx.principal.credential_id if ctx.principal else None,
        "until": now() + timedelta(days=ctx.services.audit_days),
        "action": action,
        "target": target,
        "customerId": customer_id,
    }


def record_sign_in(ctx: Context) -> None:
    """Note that the caller has signed in."""
    _count_sign_in(ctx, ctx.company_id, "sign_in.succeeded", recording.actor_of(ctx))


def record_failed_sign_in(ctx: Context, company_id: ObjectId, subject_id: ObjectId, *, is_coach: bool) -> None:
    """Note that someone failed to sign in as a user of a company, outside of a transaction that ends with the failure.

    It takes no time that would reveal that there is such a user.
    """
    actor: recording.Actor = {"type": "coach" if is_coach else "client", "_id": subject_id, "name": ""}
    _count_sign_in(ctx, company_id, "sign_in.failed", actor)


def _count_sign_in(ctx: Context, company_id: ObjectId, action: AuditAction, actor: recording.Actor) -> None:
    is_coach = actor["type"] == "coach"
    identifier = ObjectId()
    target: AuditTarget = {"kind": "sign_in", "_id": actor["_id"], "name": None}
    entry = _entry_of(ctx, action, target, None if is_coach else actor["_id"])
    entry["actor"], entry["via"] = actor, "session" if is_coach else "client"
    entry["device"] = ctx.device[:_MAX_DEVICE]
    ctx.services.pending_entries.count(identifier, lambda: _new_entry(company_id, identifier, entry))


# --- Reads -----------------------------------------------------------------------------------------------------------

# What the interfaces call by other names, by what the log calls it.
_SYNONYMS = {
    name: kind
    for kind, names in {
        "workouts": ("wblock", "wblocks", "witems", "blocks", "month", "schedule", "logs", "workout", "workout_items"),
        "activity": ("activity_feed",),
        "messages": ("inbox", "conversations", "message"),
        "metrics": ("metrics_sets", "metric_sets", "metric_values", "metric_history", "metric"),
        "nutrition_plans": ("plans", "plan_versions"),
        "personal_records": ("records",),
        "progress_photos": ("photos",),
        "exercises": ("exercise", "exercise_history"),
        "workload": ("training_load",),
        "volume": ("musclegroups",),
        "media": ("form_checks",),
        "proposals": ("proposal",),
        "notes": ("note",),
        "check_ins": ("check_in",),
        "training_maxes": ("training_max",),
        "changes": ("history", "undo"),
    }.items()
    for name in names
}


def kind_of_path(path: str) -> str:
    """Return what is read at a path: the first word that is neither an interface nor a client's identifier."""
    words = [word for word in path.replace("/by-external-id", "").split("/")[2:] if word and not word.startswith("{")]
    if words[:1] == ["customers"] and ("{customerId}" in path or "{externalId}" in path):
        words = words[1:] or ["customer"]
    name = (words or ["home"])[0].replace("-", "_")
    return _SYNONYMS.get(name, name)


def kind_of_tool(name: str) -> str:
    """Return what a tool returns: its name without the verb."""
    subject = name.partition("_")[2] or name
    return _SYNONYMS.get(subject, subject)


def record_access(ctx: Context, kind: str) -> None:
    """Note that the caller, a coach, was shown data of clients: those whose access the services have checked.

    What changed something is in the change log instead. Nothing is noted of clients who see their own data.
    """
    caller, seen = ctx.principal, ctx.clients_seen
    if caller is None or ctx.change_ids:
        return
    if not caller.is_coach:
        if caller.impersonated_by is not None:
            _count_read(ctx, "session", caller.impersonated_by, "", caller.id, kind)
    elif seen.in_list and len(seen.ids) != 1:
        _count_read(ctx, recording.interface_of(ctx), caller.id, caller.name, None, kind)
    else:
        for customer_id in seen.ids:
            _count_read(ctx, recording.interface_of(ctx), caller.id, caller.name, customer_id, kind)


class LinkReader(NamedTuple):
    """For whom a link was made: a coach, or on behalf of one an assistant or application with a grant or key."""

    via: recording.Interface
    coach_id: ObjectId
    grant_id: ObjectId | None


def record_file(ctx: Context, company_id: ObjectId, customer_id: ObjectId, reader: LinkReader) -> None:
    """Note that a file of a client was opened by a link that was made for a coach, or an assistant or application."""
    _count_read(ctx, reader.via, reader.coach_id, "", customer_id, "file", company_id, reader.grant_id)


def _count_read(
    ctx: Context,
    via: recording.Interface,
    actor_id: ObjectId,
    name: str,
    customer_id: ObjectId | None,
    kind: str,
    company_id: ObjectId | None = None,
    grant_id: ObjectId | None = None,
) -> None:
    """Count a read of one kind by one actor within an hour. It costs each request some microseconds."""
    company = company_id or ctx.company_id
    if via in ("application", "assistant") and ctx.principal:
        grant_id = ctx.caller.credential_id
    key = (company, via, actor_id, grant_id, customer_id, kind, int(time.time() // _HOUR_SECONDS))

    def make() -> AuditEntry:
        actor: recording.Actor = {"type": recording.ACTOR_TYPES[via], "_id": actor_id, "name": name}
        if via == "application" and grant_id is not None:
            actor["applicationId"] = grant_id
        action: AuditAction = "list.read" if customer_id is None else "client.read"
        entry = _entry_of(ctx, action, {"kind": kind, "_id": None, "name": None}, customer_id)
        entry["actor"], entry["via"] = actor, via
        if grant_id is not None:
            entry["credentialId"] = grant_id
        return _new_entry(company, stable_id("read", *map(str, key)), entry)

    ctx.services.pending_entries.count(key, make)


def _new_entry(company_id: ObjectId, identifier: ObjectId, entry: NewAuditEntry) -> AuditEntry:
    at = now()
    return {**entry, "_id": identifier, "companyId": company_id, "createdAt": at, "updatedAt": at, "version": 0}


async def store_entries(services: Services, entries: Iterable[AuditEntry]) -> None:
    """Store entries that were noted, or add to the number of reads of the same hour."""
    await insert_or_count(_entries, services, entries)


# --- Reading the log -------------------------------------------------------------------------------------------------


async def list_newest(ctx: Context, where: Filter, limit: int) -> list[AuditEntry]:
    """Return entries of the company, newest first."""
    return await _entries.find(ctx, where, sort=NEWEST_FIRST, limit=limit)


async def list_sign_ins(ctx: Context) -> list[AuditEntry]:
    """Return the last sign-ins of the caller, and those that failed, newest first."""
    where = {"actor._id": ctx.caller.id, "action": {"$in": ["sign_in.succeeded", "sign_in.failed"]}}
    return await list_newest(ctx, where, _SIGN_INS)


async def count_reads_by_day(
    ctx: Context, customer_id: ObjectId, since: datetime, timezone: str
) -> list[recording.CountedByDay]:
    """Return how often each actor has read the data of a client on each day."""
    where = {
        "customerId": customer_id,
        "createdAt": {"$gte": since},
        "action": {"$in": ["client.read", "client.exported"]},
    }
    return await _entries.aggregate(
        ctx, where, *recording.by_day(timezone, {"$sum": "$count"}), hint=_entries.by_client
    )


async def find_application_names(ctx: Context, credential_ids: Iterable[ObjectId | None]) -> dict[ObjectId, str]:
    """Return the names of assistants and applications by what a coach has allowed them, ended or not."""
    return await _find_target_names(ctx, ["assistant.allowed", "application.allowed"], credential_ids)


async def find_credential_names(
    ctx: Context, credential_ids: Iterable[ObjectId | None], made_by: ObjectId | None
) -> dict[ObjectId, str]:
    """Return the names of keys, assistants and applications, ended or not: of one coach, or of the whole company."""
    actions: list[AuditAction] = ["key.created", "assistant.allowed", "application.allowed"]
    return await _find_target_names(ctx, actions, credential_ids, made_by)


async def _find_target_names(
    ctx: Context,
    actions: Sequence[AuditAction],
    target_ids: Iterable[ObjectId | None],
    made_by: ObjectId | None = None,
) -> dict[ObjectId, str]:
    where: Filter = {
        "action": {"$in": list(actions)},
        "target._id": {"$in": [each for each in set(target_ids) if each is not None]},
        **({"actor._id": made_by} if made_by is not None else {}),
    }
    hint = _entries.index_name("action", "createdAt", "_id")
    found = await _entries.find(ctx, where, fields=("target",), hint=hint)
    return {each["target"]["_id"]: each["target"]["name"] or "" for each in found if each["target"]["_id"]}
