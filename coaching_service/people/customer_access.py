"""How clients get access: invitation, first access, impersonation, and passwords set by their coach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, NotRequired, TypedDict

from coaching_service.core import audit, errors
from coaching_service.core.auth import CUSTOMERS, Principal, coach, public, session_only
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.errors import CompanySuspended, Conflict, SignInRejected
from coaching_service.core.fields import Default
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail, subject_with
from coaching_service.core.validation import Email, Text
from coaching_service.people import second_factor, team
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer, CustomerProfile, CustomersCreated
from coaching_service.people.identities import models
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import NewPassword, hash_password
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.models import AccessToken, Confirmation, SignedIn

# --- Requests about a client's access ---------------------------------------------------------------------------------


class FirstAccess(TypedDict):
    """A client's first access."""

    token: Annotated[str, Text(max_length=100)]
    password: Annotated[str, NewPassword()]
    email: NotRequired[Annotated[str | None, Email()]]


class CustomerPassword(TypedDict):
    """A password set by the coach."""

    password: Annotated[str, NewPassword()]


class DeclineLink(TypedDict):
    """The token of a link in an invitation."""

    token: Annotated[str, Text(max_length=500), Default("")]


class DeclinePage(DeclineLink):
    """The company whose invitations the token declines; None if the token is not valid."""

    company: str | None


# --- Invitation ------------------------------------------------------------------------------------------------------


async def invite_new_customers(ctx: Context, event: CustomersCreated) -> None:
    """Queue the invitations of new clients, if the coach wants them and the clients have an e-mail address."""
    invited = [each for each in event.created if each.send_invitation]
    await _queue_invitations(ctx, [(each.customer, each.first_access_token) for each in invited])


@transactional
async def invite(ctx: Context, customer_id: ObjectId) -> None:
    """Queue another invitation with a new token; the previous token becomes invalid.

    Raises NotFound, Forbidden as customers.get_visible; InvalidFields if the client has no e-mail address; Conflict if
    the client can sign in already, is archived and could not, or wants no more invitations; TooManyRequests if the
    company has sent too many, or too many to this address.
    """
    customer = await customers.get_visible(ctx, customer_id, None)
    if customer["customerRoleData"]["isArchived"]:
        raise errors.Conflict(
            "An archived client cannot sign in; restore the client, then invite", code="CUSTOMER_ARCHIVED"
        )
    if customer["email"] is None:
        raise _email_missing("is needed: this client has none to send an invitation to")
    if await identities.get_email(ctx, customer_id) is not None:
        raise errors.Conflict("This client can already sign in", code="ALREADY_SIGNS_IN")
    await team.require_invitation_possible(ctx, customer["email"])
    await _queue_invitations(ctx, [(customer, await customers.create_first_access_token(ctx, customer_id))])


async def _queue_invitations(ctx: Context, invited: Sequence[tuple[Customer, str]]) -> None:
    """Queue the invitations of those clients, each with its first-access token, who have an e-mail address.

    A person who is invited for several clients gets one at a time, and none after declining them.
    """
    with_address = [
        (customer, customer["email"], token) for customer, token in invited if customer["email"] is not None
    ]
    if not with_address:
        return
    delays = await team.reserve_invitations(ctx, [email for _, email, _ in with_address])
    mails = []
    for (customer, email, token), delay in zip(with_address, delays, strict=True):
        if delay is None:
            continue
        company = ctx.caller.company.name
        mailed_token = identities.sign_invitation(ctx.services, token, email)
        inviter = company if ctx.caller.name == company else f"{ctx.caller.name} of {company}"
        body: MailBody = {
            "company": company,
            "name": customer["name"],
            "paragraphs": [
                f"{inviter} invites you to your training plan, on your phone: what to do today, what you did the last "
                "time, and messages with your coach.",
                "To begin, choose a password.",
            ],
            "button": "Open your training plan",
            "link": f"{ctx.services.base_url}/train/first-access?token={mailed_token}",
            "notes": ["The link works once. Afterwards, sign in with your e-mail address and the password you chose."],
            "reason": f"You receive this mail because {company} added you as a client with this e-mail address. "
            "If you do not know them, ignore it.",
            "settings": None,
            "decline": team.decline_link(ctx, email),
        }
        subject = subject_with(company, "{} invites you to your training plan", "You are invited to your training plan")
        mails.append(NewMail(models.normalize_email(email), subject, body, customer["_id"], after=delay))
    await mail.enqueue_mails(ctx, mails)


def _email_missing(message: str) -> errors.InvalidFields:
    return errors.invalid_field("email", message, code="REQUIRED")


# --- First access ----------------------------------------------------------------------------------------------------


async def find_invited(ctx: Context, token: str) -> Principal | None:
    """Return the client of a first-access token, returned or mailed; None if it is no longer valid."""
    token = token.partition(".")[0]
    customer = await customers.find_by_first_access_token(ctx.services, token) if token else None
    return customer and await customers.load_principal(ctx.services, customer["companyId"], customer["_id"])


async def choose_password(ctx: Context, token: str, password: str, email: str | None) -> Context:
    """Set the first password of a client by a first-access token; returns a context with the client as the caller.

    The client signs in by `email`, else by the e-mail address that the coach entered. A token that was mailed to this
    address confirms it. Raises SignInRejected if the token is unknown or used, InvalidFields if there is no e-mail
    address, Conflict if it is already used to sign in, SecondFactorRequired as sessions.sign_in.
    """
    token, _, signature = token.partition(".")  # which a mailed token has
    customer = await customers.find_by_first_access_token(ctx.services, token)
    if customer is None:
        raise _token_rejected()
    principal = await customers.load_principal(ctx.services, customer["companyId"], customer["_id"])
    if principal is None:
        raise _token_rejected()
    sign_in_email = email or customer["email"]
    if sign_in_email is None:
        raise _email_missing("is required: your coach has not entered an e-mail address for you")
    client_ctx = ctx.acting_as(principal)
    is_confirmed = identities.confirms_email(ctx.services, signature, token, sign_in_email)
    await _use_token(client_ctx, token, sign_in_email, await hash_password(password), is_confirmed=is_confirmed)
    # A client who has lost the e-mail address to another user signed in before, and still has the second factor.
    if (verified := await identities.find_verified(client_ctx, principal.id)) is not None:
        await second_factor.require_none(client_ctx, verified)
    return client_ctx


@transactional
async def _use_token(ctx: Context, token: str, email: str, password_hash: str, *, is_confirmed: bool) -> None:
    customer_id = ctx.caller.id
    if not await customers.use_first_access_token(ctx, customer_id, token, email):
        raise _token_rejected()
    await identities.create(ctx, customer_id, "customer", email, password_hash, is_confirmed=is_confirmed)
    await customers.record_sign_in(ctx, customer_id)


def _token_rejected() -> errors.SignInRejected:
    return errors.SignInRejected("The token is unknown or has been used; ask your coach for another invitation")


# --- Access by the coach ---------------------------------------------------------------------------------------------


@transactional
async def _set_password(ctx: Context, customer_id: ObjectId, password_hash: str) -> CustomerProfile:
    customer = await customers.get(ctx, customer_id)
    had_password = await identities.has_password(ctx, customer_id)
    if not await identities.set_password(ctx, customer_id, password_hash):
        if customer["email"] is None:
            raise _email_missing("is needed: this client has none to sign in by")
        await identities.create(ctx, customer_id, "customer", customer["email"], password_hash)
    if had_password:
        client = replace(ctx.caller, id=customer_id, role="CUSTOMER", name=customer["name"])
        await credentials.report_password_change(ctx, client, f"by {ctx.caller.name}")
    await sessions.end_sessions(ctx, customer_id)
    await audit.record(ctx, "client.password_set", customer_id, customer_id=customer_id)
    return customer


# --- Declining the invitations of a company, by the link in one of them -----------------------------------------------


async def find_company_name(services: Services, token: str) -> str | None:
    """Return the name of the company whose invitations a token declines; None if the token is not valid."""
    try:
        owner, _ = await team.get_declined(services, token)
    except errors.NotFound:
        return None
    return owner.company.name


async def decline(ctx: Context, token: str) -> None:
    """Stop further invitations of the company to the person whom the token was mailed to.

    Raises NotFound if the token is not valid or the company is deleted.
    """
    owner, address_hash = await team.get_declined(ctx.services, token)
    await team.decline_invitations(ctx.acting_as(owner), address_hash)


# --- REST -------------------------------------------------------------------------------------------------------------


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
    client_ctx = await choose_password(ctx, body["token"], body["password"], body.get("email"))
    return await sessions.create_session(client_ctx, client_ctx.caller.id, "customer")


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
    await invite(ctx, customer_id)
    return {"message": "The invitation has been queued"}


@routes.post(
    "/coach/customers/{customerId}/impersonate",
    access=session_only(CUSTOMERS.EDIT),
    locks="customer",
    status=200,
    refuses_key=False,
    errors=(Conflict,),
)
@transactional
async def impersonate_customer(ctx: Context, customer_id: ObjectId) -> AccessToken:
    """Act as a client.

    A session of 15 minutes that cannot be renewed. It is recorded in the audit log.
    """
    # Raises NotFound, Forbidden as customers.get_visible; Conflict if the client is archived.
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "customerRoleData.isArchived"))
    if customer["customerRoleData"]["isArchived"]:
        raise errors.Conflict("An archived client cannot sign in or be impersonated", code="CUSTOMER_ARCHIVED")
    await audit.record(ctx, "client.impersonated", customer_id, customer_id=customer_id)
    return await sessions.impersonate(ctx, customer_id)


@routes.put(
    "/coach/customers/{customerId}/password",
    request_class="unlimited",
    access=session_only(CUSTOMERS.EDIT),
    locks="customer",
    returns=customer_models.CUSTOMER,
    errors=(Conflict,),
    example={"password": "correct horse battery staple"},
)
async def set_customer_password(ctx: Context, customer_id: ObjectId, body: CustomerPassword) -> CustomerProfile:
    """Set a client's password.

    All of the client's sessions end.
    """
    # A client who could not sign in yet can do so then by the e-mail address that the coach entered, which is not
    # confirmed by this. Raises NotFound, Forbidden as customers.get_visible; InvalidFields if the client has no e-mail
    # address; Conflict if it is already used to sign in.
    await customers.get_visible(ctx, customer_id)
    return await _set_password(ctx, customer_id, await hash_password(body["password"]))


@routes.delete("/coach/customers/{customerId}/second-factor", access=session_only(CUSTOMERS.EDIT), locks="customer")
async def reset_customer_second_factor(ctx: Context, customer_id: ObjectId) -> None:
    """Remove a client's second factor.

    For a client who has lost the device and the recovery codes. The client's sessions end, and the client gets a
    mail.
    """
    # Raises NotFound, Forbidden as customers.get_visible.
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "name"))
    client = replace(ctx.caller, id=customer_id, role="CUSTOMER", name=customer["name"])
    await credentials.reset_second_factor(ctx, client)
