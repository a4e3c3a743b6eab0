"""The attention list over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import CursorPage
from coaching_service.people.customers.trainer_filter import parse_trainers
from coaching_service.progress.attention import service
from coaching_service.progress.attention.models import AttentionDismissal, AttentionEntry, AttentionQuery

routes = Routes("/coach/attention", tag="Attention")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_attention(ctx: Context, query: AttentionQuery) -> CursorPage[AttentionEntry]:
    """List the clients who need attention, highest score first.

    The reasons are stored with the clients: they follow a change within ten seconds, and the date once a local day.
    Archived clients, and those that the caller may not see, are left out.
    """
    return await service.list_attention(
        ctx,
        reasons=query["reason"],
        groups=query.get("groups"),
        trainers=parse_trainers(query.get("assignedTo")),
        inactive_days=query["inactiveDays"],
        limit=query["limit"],
        after=query["after"],
    )


@routes.put(
    "/{customerId}",
    access=coach(CUSTOMERS.EDIT),
    errors=(Conflict,),
    example={"reason": "nothing_scheduled", "until": None},
)
async def dismiss_attention(ctx: Context, customer_id: ObjectId, body: AttentionDismissal) -> AttentionEntry:
    """Dismiss a reason for the whole company.

    Until the date `until`, or until its `since` is later: until something new happens. The answer is the client with
    the reasons that are left. 409 if the client does not have the reason.
    """
    return await service.dismiss(ctx, customer_id, [body["reason"]], until=body["until"])
