"""The history, events and undo over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, WEBHOOKS, coach, coach_with_any
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, CursorExpired, NotFound
from coaching_service.core.events import Accepted
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import events, models, samples, service
from coaching_service.people.changes.events import EVENT, EventList

_PATHS = {"changeId": "The change, or the batch of a bulk operation."}
routes = Routes("/coach", tag="Changes", path_descriptions=_PATHS)


@routes.get("/changes", access=coach(CUSTOMERS.VIEW))
async def list_changes(ctx: Context, query: models.HistoryQuery) -> models.ChangeList:
    """List what was changed, newest first.

    Changes about clients or areas that the caller may not see are left out.
    """
    return await service.list_changes(
        ctx,
        limit=query["limit"],
        after=query["after"],
        customer_id=query["customerId"],
        via=query["via"],
        actor_id=query["actorId"],
        since=query["since"],
        credential_id=ctx.caller.credential_id if query["mine"] else None,
    )


@routes.get("/changes/{changeId}", access=coach(CUSTOMERS.VIEW), errors=(NotFound,))
async def get_change(ctx: Context, change_id: ObjectId) -> models.ChangeDetails:
    """Read a change with the values before and after.

    Values are stored for 30 days, and only for changes that can be undone.
    """
    return await service.get_change(ctx, change_id)


@routes.post(
    "/changes/{changeId}/undo",
    access=coach(),
    status=200,
    returns=models.UndoResult,
    errors=(NotFound, Conflict),
    request_class="bulk",
    resumable=True,
)
async def undo_change(ctx: Context, change_id: ObjectId, claim: Claim | None) -> models.UndoResult | Accepted:
    """Undo a change, or all changes of a bulk operation by their `batchId`.

    Documents are restored unless they have been changed since. The undo is a change itself and can be undone. It needs
    the permission of the operation that reverses the change. Creating and deleting a client, uploads, messages, mail,
    keys and the team cannot be undone. A batch of more than 500 changes is undone by a job.
    """
    return await service.undo_or_begin_job(ctx, change_id, claim)


@routes.get("/events/samples", access=coach_with_any(CUSTOMERS.VIEW, WEBHOOKS), returns=list_of(EVENT))
async def list_event_samples(_: Context, query: models.SampleQuery) -> list[models.Event]:
    """List a sample of each type of event.

    All fields that its data can have, with invented identifiers that are always the same: for programs that have to
    know what they will receive.
    """
    return samples.list_samples(query["types"])


@routes.get("/events", access=coach(CUSTOMERS.VIEW), returns=EventList, errors=(CursorExpired,), request_class="held")
async def list_events(ctx: Context, query: models.EventQuery) -> models.EventPage:
    """List events, oldest first; with `wait`, wait for the next one.

    Events are available for 30 days. Those about clients or areas that the caller may not see are left out.
    """
    page = await events.list_events(
        ctx,
        limit=query["limit"],
        after=query["after"],
        types=query["types"],
        customer_id=query["customerId"],
        wait=query["wait"],
    )
    if page["docs"]:
        ctx.clients_seen.add(query["customerId"])
    return page
