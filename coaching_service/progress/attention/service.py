"""The clients that need attention: found when their figures are renewed, listed, and dismissed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import Conflict
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import CursorPage
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AttentionSettings
from coaching_service.people.customers import attention_events, derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.attention_events import RENEWAL
from coaching_service.people.customers.models import Attention, Customer, FigureMark, ReasonType
from coaching_service.progress import reminders
from coaching_service.progress.attention import store
from coaching_service.progress.attention.models import (
    AttentionCustomer,
    AttentionEntry,
    AttentionReason,
    DismissalFields,
)
from coaching_service.progress.attention.reasons import (
    DatedReason,
    LoadedClient,
    Quotes,
    find_reasons,
    load_clients,
    quote_causes,
    summarize,
)
from coaching_service.progress.compliance.models import ClientFigures
from coaching_service.progress.reminders import ClientDay

_REPORTED_AT_ONCE = 20
_NOTHING: Attention = {"score": 0, "reasons": [], "dismissed": []}


# --- the list --------------------------------------------------------------------------------------------------------


async def list_attention(
    ctx: Context,
    *,
    reasons: Sequence[ReasonType] = (),
    groups: list[str] | None = None,
    trainers: list[ObjectId | None] | None = None,
    inactive_days: int | None = None,
    limit: int,
    after: str | None = None,
) -> CursorPage[AttentionEntry]:
    """Return part of the active clients in the coach's scope that need attention, highest score first.

    With `reasons`: clients with one of them, all of whose reasons are listed; in any of `groups`, of any of `trainers`
    (None among them: clients without a trainer). `inactive_days`: clients without a session in so many days, also
    those that need attention for nothing else. Raises InvalidFields if `after` is not a cursor of this list with the
    same filters.
    """
    part = await derived_figures.list_attention(
        ctx,
        reasons=reasons,
        groups=groups,
        trainers=trainers,
        inactive_since=None if inactive_days is None else ctx.caller.today() - timedelta(days=inactive_days),
        limit=limit,
        after=after,
    )
    quotes = await quote_causes(ctx, part["docs"])
    docs = [present(ctx, client, quotes) for client in part["docs"]]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


def present(ctx: Context, customer: Customer, quotes: Quotes | None = None) -> AttentionEntry:
    """Return a client with the fields of the attention list as an entry of it."""
    photo, role = customer["profilePhoto"], customer["customerRoleData"]
    attention = customer.get("attention") or _NOTHING
    shown: AttentionCustomer = {
        "_id": customer["_id"],
        "name": customer["name"],
        "surname": customer["surname"],
        "profilePhotoUrl": file_url(ctx.services, photo["fileId"]) if photo else None,
        "groups": role["groups"],
        "assignedTo": role["assignedTo"],
        "lastTrainedDate": role["lastTrainedDate"],
        "complianceRate7d": role["complianceRate7d"],
    }
    reasons: list[AttentionReason] = [
        {**reason, "quote": (quotes or {}).get((customer["_id"], reason["type"]))} for reason in attention["reasons"]
    ]
    return {"customer": shown, "score": attention["score"], "reasons": reasons}


@transactional
async def dismiss(
    ctx: Context, customer_id: ObjectId, reason_types: Collection[ReasonType], *, until: str | None = None
) -> AttentionEntry:
    """Dismiss those reasons of a client that apply, for the whole company; return the client with what is left.

    Until the date `until`, local to the client, on which they count again; without one, or if this is earlier, until
    something new happens: until the newest occurrence is later. A date that is not in the future ends an earlier
    dismissal. The reasons are computed again first. Raises Conflict if none of them applies to the client, NotFound if
    the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    await customers.lock_and_mark_figures(ctx, customer_id)
    settings = (await account.get(ctx))["attention"]
    loaded = (await load_clients(ctx, {customer_id: customer["timezone"]}, settings))[customer_id]
    reasons = _find_reasons(loaded, settings)
    wanted = set(reason_types).difference(attention_events.list_hidden(ctx))
    dismissed: dict[ReasonType, DismissalFields] = {
        each.reason["type"]: {"until": until, "since": each.newest} for each in reasons if each.reason["type"] in wanted
    }
    if not dismissed:
        raise Conflict("The client does not need attention for this reason", code="REASON_NOT_PRESENT")
    for reason_type, fields in dismissed.items():
        await store.dismissals.upsert(ctx, {"customerId": customer_id, "reason": reason_type}, fields)
    changed = replace(loaded, dismissals={**loaded.dismissals, **dismissed})
    await _plan_reminders(ctx, {customer_id: loaded})
    summary = summarize(reasons, changed.dismissals, loaded.state.today)
    await _store_and_report(ctx, {customer_id: changed}, {customer_id: summary})
    customer = await derived_figures.read_for_attention(ctx, customer_id)
    return present(ctx, customer, await quote_causes(ctx, [customer]))


# --- renewal ---------------------------------------------------------------------------------------------------------


async def renew(ctx: Context, customer_id: ObjectId) -> None:
    """Compute the figures and reasons of a client at once, after a change that the caller made.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await _renew(replace(ctx, operation=RENEWAL, interface="system", change_ids=[]), customer_id)


@transactional
async def _renew(ctx: Context, customer_id: ObjectId) -> None:
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    await _compute_and_store(ctx, {customer_id: customer["timezone"]})


@on_worker_thread
async def renew_due(ctx: Context, clients: Sequence[Customer]) -> None:
    """Compute and store the figures and reasons of clients of the company that `derived_figures.list_due` returned.

    What is stored of a client that has been marked or renewed in the meantime stays, and the client stays due. It is
    computed without a transaction, which would collide with each log of one of these clients; those with a reason that
    is raised or cleared are stored in one, a few at a time, with the events.
    """
    marks = {client["_id"]: derived_figures.mark_of(client) for client in clients}
    await _compute_and_store(ctx, {client["_id"]: client["timezone"] for client in clients}, marks)


async def _compute_and_store(
    ctx: Context, timezones: Mapping[ObjectId, str | None], marks: Mapping[ObjectId, FigureMark] | None = None
) -> None:
    """Compute the figures of clients and why they need attention, and store both for the lists.

    The clients are given with their time zones (None: the company's). What is stored is valid until the first hours of
    the client's next day. The number of queries does not depend on the number of clients.
    """
    settings = (await account.get(ctx))["attention"]
    loaded = await load_clients(ctx, timezones, settings)
    attention = {
        client: summarize(_find_reasons(each, settings), each.dismissals, each.state.today)
        for client, each in loaded.items()
    }
    changed = [
        client
        for client, each in loaded.items()
        if attention_events.is_changed(each.stored_reasons, attention[client]["reasons"])
    ]
    await _plan_reminders(ctx, loaded)
    await _store(ctx, {client: loaded[client] for client in loaded.keys() - set(changed)}, attention, marks)
    for start in range(0, len(changed), _REPORTED_AT_ONCE):
        part = {client: loaded[client] for client in changed[start : start + _REPORTED_AT_ONCE]}
        await _store_and_report(ctx, part, attention, marks)


def _find_reasons(client: LoadedClient, settings: AttentionSettings) -> list[DatedReason]:
    return [] if client.is_archived else find_reasons(client.state, settings)


@transactional
async def _store_and_report(
    ctx: Context,
    loaded: Mapping[ObjectId, LoadedClient],
    attention: Mapping[ObjectId, Attention],
    marks: Mapping[ObjectId, FigureMark] | None = None,
) -> None:
    """Store the figures and reasons of clients, and report which reasons are raised and which are cleared.

    With `marks`, only of clients whose figures have neither been marked nor stored since these were read.
    """
    if marks is not None:
        unchanged = await derived_figures.find_unchanged(ctx, {client: marks[client] for client in loaded})
        loaded = {client: loaded[client] for client in unchanged}
    await _store(ctx, loaded, attention)
    for client, each in loaded.items():
        attention_events.report(ctx, client, each.stored_reasons, attention[client]["reasons"])


async def _plan_reminders(ctx: Context, loaded: Mapping[ObjectId, LoadedClient]) -> None:
    """Make due what clients are to be reminded of.

    Before the mark of a change is removed: what a killed process has not planned is planned by the next one.
    """
    days = {client: ClientDay(each.state.today, each.state.timezone) for client, each in loaded.items()}
    await reminders.plan(ctx, days)


async def _store(
    ctx: Context,
    loaded: Mapping[ObjectId, LoadedClient],
    attention: Mapping[ObjectId, Attention],
    marks: Mapping[ObjectId, FigureMark] | None = None,
) -> None:
    """Store the figures and reasons of clients, as derived_figures.store_figures does, until their next renewal."""
    figures: dict[ObjectId, ClientFigures] = {}
    valid_until: dict[ObjectId, datetime] = {}
    stored: dict[ObjectId, Attention] = {}
    for client, each in loaded.items():
        figures[client] = each.figures
        valid_until[client] = derived_figures.next_renewal(ctx.company_id, each.state.today, each.state.timezone)
        unread = each.state.unread
        stored[client] = {**attention[client], "unread": unread["count"] if unread else None}
    await derived_figures.store_figures(ctx, figures, valid_until, stored, marks=marks)


async def mark_restored_due(ctx: Context, event: DocumentsRestored) -> None:
    """Have the figures and reasons of the clients renewed whose documents an undo has restored."""
    documents = [document.after or document.before or {} for document in event.documents]
    if client_ids := {document["customerId"] for document in documents if document.get("customerId")}:
        await derived_figures.mark_due(ctx, sorted(client_ids))
