"""A client's access over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach, public, session_only
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, SignInRejected
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people.customer_access import service
from coaching_service.people.customer_access.schemas import CustomerPassword, FirstAccess
from coaching_service.people.customers.schemas import Customer
from coaching_service.people.sessions.schemas import AccessToken, Confirmation, SessionTokens

routes = Routes("", tag="Client access")


@routes.post(
    "/auth/first-access",
    request_class="unlimited",
    access=public(),
    status=200,
    body=FirstAccess(),
    returns=SessionTokens,
    errors=(SignInRejected, Conflict),
    example={"token": "1f0c0ffe-0000-4000-8000-00000000abcd", "password": "correct horse battery staple"},
)
async def use_first_access(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Let a client in for the first time.

    The token is the `firstAccessToken` of the client's creation, or the one of an invitation. `email` is needed where
    the client has none, or theirs signs somebody else in.
    """
    return await service.complete_first_access(ctx, body["token"], body["password"], body.get("email"))


@routes.post(
    "/coach/customers/{customerId}/invitation",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    returns=Confirmation,
    errors=(Conflict,),
)
async def invite_customer(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """Invite a client again.

    The mail carries a new token; the one before ends.
    """
    await service.invite(ctx, customer_id)
    return {"message": "The invitation is on its way"}


@routes.post(
    "/coach/customers/{customerId}/impersonate",
    access=session_only(CUSTOMERS.EDIT),
    status=200,
    returns=AccessToken,
    errors=(Conflict,),
)
async def impersonate_customer(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """Act as a client.

    A session of 15 minutes that cannot be renewed; it is marked and audited.
    """
    return await service.impersonate(ctx, customer_id)


@routes.put(
    "/coach/customers/{customerId}/password",
    request_class="unlimited",
    access=session_only(CUSTOMERS.EDIT),
    body=CustomerPassword(),
    returns=Customer,
    errors=(Conflict,),
    example={"password": "correct horse battery staple"},
)
async def set_customer_password(ctx: Context, customer_id: ObjectId, body: dict[str, Any]) -> dict[str, Any]:
    """Set a client's password.

    All of the client's sessions end.
    """
    return await service.set_password(ctx, customer_id, body["password"])
