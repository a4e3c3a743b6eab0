"""A client's access over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach, public, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import CompanySuspended, Conflict, SignInRejected
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people.customer_access import service
from coaching_service.people.customer_access.service import CustomerPassword, FirstAccess
from coaching_service.people.customers.models import CustomerProfile
from coaching_service.people.customers.schemas import Customer
from coaching_service.people.sessions.models import AccessToken, Confirmation, SignedIn

routes = Routes("", tag="Client access")


@routes.post(
    "/auth/first-access",
    request_class="unlimited",
    access=public(),
    status=200,
    errors=(CompanySuspended, SignInRejected, Conflict),
    example={"token": "1f0c0ffe-0000-4000-8000-00000000abcd", "password": "correct horse battery staple"},
)
async def use_first_access(ctx: Context, body: FirstAccess) -> SignedIn:
    """Set a client's first password and sign in.

    The token is the `firstAccessToken` that creating the client returned, or the one in an invitation. `email` is
    needed if the client has none, or another user signs in by it. A token from an invitation confirms the e-mail
    address; an address that is not confirmed can be claimed by a user who confirms it.
    """
    return await service.complete_first_access(ctx, body["token"], body["password"], body.get("email"))


@routes.post(
    "/coach/customers/{customerId}/invitation",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    status=200,
    refuses_key=True,
    errors=(Conflict,),
)
async def invite_customer(ctx: Context, customer_id: ObjectId) -> Confirmation:
    """Invite a client again.

    The mail contains a new token; the previous one becomes invalid.
    """
    await service.invite(ctx, customer_id)
    return {"message": "The invitation has been queued"}


@routes.post(
    "/coach/customers/{customerId}/impersonate",
    access=session_only(CUSTOMERS.EDIT),
    locks="customer",
    status=200,
    refuses_key=False,
    errors=(Conflict,),
)
async def impersonate_customer(ctx: Context, customer_id: ObjectId) -> AccessToken:
    """Act as a client.

    A session of 15 minutes that cannot be renewed. It is recorded in the audit log.
    """
    return await service.impersonate(ctx, customer_id)


@routes.put(
    "/coach/customers/{customerId}/password",
    request_class="unlimited",
    access=session_only(CUSTOMERS.EDIT),
    locks="customer",
    returns=Customer,
    errors=(Conflict,),
    example={"password": "correct horse battery staple"},
)
async def set_customer_password(ctx: Context, customer_id: ObjectId, body: CustomerPassword) -> CustomerProfile:
    """Set a client's password.

    All of the client's sessions end.
    """
    return await service.set_password(ctx, customer_id, body["password"])


@routes.delete("/coach/customers/{customerId}/second-factor", access=session_only(CUSTOMERS.EDIT), locks="customer")
async def reset_customer_second_factor(ctx: Context, customer_id: ObjectId) -> None:
    """Remove a client's second factor.

    For a client who has lost the device and the recovery codes. The client's sessions end, and the client gets a
    mail.
    """
    await service.reset_second_factor(ctx, customer_id)
