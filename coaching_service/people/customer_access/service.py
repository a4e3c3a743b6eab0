"""How clients get in: invitation, first access, impersonation, and passwords set by their coach."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from coaching_service.core import audit
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import BadRequest, Conflict, SignInRejected
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.people.customers import first_access
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.events import CustomerCreated
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.sessions import service as sessions

T = TypeVar("T")
Then = Callable[[Context], Awaitable[T]]


async def invite_new_customer(ctx: Context, event: CustomerCreated) -> None:
    """Queue the invitation of a new client, if the coach wants one and the client has an e-mail address."""
    if event.send_invitation and event.customer["email"] is not None:
        await _queue(ctx, event.customer, event.first_access_token)


async def invite(ctx: Context, customer_id: ObjectId) -> None:
    """Queue another invitation with another token; the token before ends.

    Raises NotFound, Forbidden; BadRequest for a client without an e-mail; Conflict for one who signs in already, or is
    archived and could not.
    """
    customer = await customers.read(ctx, customer_id)
    if customer["customerRoleData"]["isArchived"]:
        raise Conflict("An archived client cannot sign in; restore the client, then invite")
    if customer["email"] is None:
        raise BadRequest("email is needed: this client has none to send an invitation to")
    if await identities.get_email(ctx, customer_id) is not None:
        raise Conflict("This client signs in already")

    async def queued(tx: Context) -> None:
        await _queue(tx, customer, await first_access.create_first_access_token(tx, customer_id))

    await in_transaction(ctx, queued)


async def _queue(ctx: Context, customer: Document, token: str) -> None:
    company = ctx.caller.company.name
    text = (
        f"Hello {customer['name']},\n\n{company} invites you to your training. Choose a password here:\n\n"
        f"{ctx.services.base_url}/app/first-access?token={token}\n\n"
        f"Or send it with this token to POST /auth/first-access: {token}\n"
    )
    await mail.enqueue_mail(ctx, customer["email"], f"{company} invites you", text, about=customer["_id"])


async def is_token_valid(ctx: Context, token: str) -> bool:
    """Whether this token still lets a client in."""
    return bool(token) and await first_access.find_by_first_access_token(ctx.services, token) is not None


async def complete_first_access(ctx: Context, token: str, password: str, email: str | None) -> Document:
    """Let a client in by the token their creation gave: they choose a password and are signed in.

    They sign in by `email`, else by the address their coach noted. Raises SignInRefused for a token that is unknown
    or used, BadRequest when there is no address at all, Conflict when the address signs somebody in already.
    """
    return await _let_in(ctx, token, password, email, lambda tx: sessions.create_session(tx, tx.caller.id, "customer"))


async def choose_password(ctx: Context, token: str, password: str, email: str | None) -> None:
    """The same without a session: the client signs in later. Raises what first_access does."""

    async def nothing_more(_: Context) -> None:
        pass

    await _let_in(ctx, token, password, email, nothing_more)


async def _let_in(ctx: Context, token: str, password: str, email: str | None, then: Then[T]) -> T:
    refused = SignInRejected("The token is unknown or has been used; ask your coach for another invitation")
    found = await first_access.find_by_first_access_token(ctx.services, token)
    principal = await first_access.load_principal(ctx.services, found["companyId"], found["_id"]) if found else None
    if found is None or principal is None:
        raise refused
    address = email or found["email"]
    if address is None:
        raise BadRequest(["email is required: your coach has noted no address of yours"])
    password_hash = await hash_password(password)

    async def let_in(tx: Context) -> T:
        if not await first_access.use_first_access_token(tx, principal.id, token, address):
            raise refused
        await identities.add(tx, principal.id, "customer", address, password_hash)
        await first_access.record_sign_in(tx, principal.id)
        return await then(tx)

    return await in_transaction(ctx.acting_as(principal), let_in)


async def impersonate(ctx: Context, customer_id: ObjectId) -> Document:
    """A client's session for the coach asking, 15 minutes long, marked and audited.

    Raises NotFound, Forbidden; Conflict for an archived client.
    """
    customer = await customers.read(ctx, customer_id)
    if customer["customerRoleData"]["isArchived"]:
        raise Conflict("An archived client cannot sign in, nor be impersonated")

    async def begun(tx: Context) -> Document:
        await audit.record(tx, "customer.impersonated", about=customer_id)
        return await sessions.impersonate(tx, customer_id)

    return await in_transaction(ctx, begun)


async def set_password(ctx: Context, customer_id: ObjectId, password: str) -> Document:
    """Set a client's password; all of the client's sessions end. Gives the client.

    A client who does not sign in yet begins to, by the e-mail noted. Raises NotFound, Forbidden; BadRequest without
    an e-mail; Conflict when that e-mail signs somebody else in.
    """
    customer = await customers.read(ctx, customer_id)
    password_hash = await hash_password(password)

    async def changed(tx: Context) -> None:
        if not await identities.set_password(tx, customer_id, password_hash):
            if customer["email"] is None:
                raise BadRequest("email is needed: this client has none to sign in by")
            await identities.add(tx, customer_id, "customer", customer["email"], password_hash)
        await sessions.end_sessions(tx, customer_id)
        await audit.record(tx, "customer.password_set", about=customer_id)

    await in_transaction(ctx, changed)
    return customer
