"""Accounts at the OpenID provider by which coaches and clients sign in, once they are linked.

An account is linked to who signs in by its verified e-mail address, after that user has signed in once with the
password, and with the second factor if there is one. Then its subject at the issuer identifies it, not the address.
"""

from __future__ import annotations

from typing import TypedDict

import orjson
from marshmallow import ValidationError

from coaching_service.core import audit
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.open_id import ProviderUser
from coaching_service.people import team
from coaching_service.people.identities import models as identity_models
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.service import Identity
from coaching_service.people.second_factor import challenges
from coaching_service.people.sessions import own_second_factor, service, web_sessions
from coaching_service.people.sessions.web_sessions import StartedSession
from coaching_service.people.team import CoachRemoved, SignInEmailChanged

_LINK = "provider account to link"
_EMPLOYEE = input_of(team.CoachName)()


class ProviderAccount(Stored):
    """The account at a provider by which a coach or client signs in: its `subject` at the `issuer`."""

    subjectId: ObjectId
    issuer: str
    subject: str


_accounts = Documents[ProviderAccount](
    "providerAccounts",
    (Index(("subjectId",), unique=True),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("issuer", "subject"), unique=True),),
    cross_company_reason="an account signs in before its company is known",
    placement=Unsharded("an account is unique among all companies, and found before its company is known"),
    transfer=NotExported("how users sign in"),
)


class _Linkable(TypedDict):
    issuer: str
    subject: str
    email: str


async def sign_in(ctx: Context, user: ProviderUser, device: str) -> StartedSession | None:
    """Start a session of the coach or client to whom the account is linked, or of a new employee.

    Returns None if the account is not linked. Raises SignInRejected if the user may not sign in.
    """
    where = {"issuer": user.issuer, "subject": user.subject}
    account = await _accounts.across_companies(ctx.services).find_one(where)
    if account is not None:
        identity = await identities.find_of_subject(ctx.services, account["companyId"], account["subjectId"])
    else:
        identity = await _create_employee(ctx, user)
        if identity is None:
            return None
    principal = None if identity is None else await service.get_principal(ctx.services, identity)
    if identity is None or principal is None:
        raise identities.sign_in_rejected()
    audit.record_sign_in(ctx.acting_as(principal))
    return await web_sessions.start(ctx, principal, identity.kind, device, has_second_factor=True)


async def _create_employee(ctx: Context, user: ProviderUser) -> Identity | None:
    """Create an employee of the company of the settings; None without one, or if the e-mail address is in use."""
    provider = ctx.services.open_id
    company_id = ObjectId(provider.registration.creates_in) if provider and provider.registration.creates_in else None
    if company_id is None or await identities.find_holder(ctx.services, user.email, company_id) is not None:
        return None
    try:
        fields = _EMPLOYEE.load({"name": user.name, "email": user.email})
        owner = await team.get_principal(ctx.services, (await team.get_owner(ctx.services, company_id)).id)
    except (ValidationError, NotFound):
        owner = None
    if owner is None:
        return None

    @transactional
    async def create(ctx: Context) -> ObjectId:
        rights = ["customers.view"]
        employee = await team.create(ctx, **fields, permissions=rights, customers_scope="assigned", is_confirmed=True)
        await _accounts.insert(ctx, {"subjectId": employee["_id"], "issuer": user.issuer, "subject": user.subject})
        return employee["_id"]

    return Identity(await create(ctx.acting_as(owner)), company_id, "coach")


# --- Linking ---------------------------------------------------------------------------------------------------------


async def can_be_linked(ctx: Context, user: ProviderUser) -> bool:
    """Return whether a user signs in by the e-mail address of an account."""
    return await identities.find_by_email(ctx.services, user.email) is not None


def sign_linkable(ctx: Context, user: ProviderUser) -> str:
    """Return a text for the browser that has signed in at the provider, to link the account within 5 minutes."""
    linkable: _Linkable = {"issuer": user.issuer, "subject": user.subject, "email": user.email}
    return challenges.create(ctx.services, _LINK, detail=orjson.dumps(linkable).decode())


@transactional
async def link(ctx: Context, linkable: str) -> bool:
    """Link the account of the browser to the caller, who has just signed in, instead of an earlier one.

    Returns False if there is none, or if the caller does not sign in by its e-mail address.
    """
    if (challenge := await challenges.find(ctx.services, _LINK, linkable)) is None:
        return False
    account: _Linkable = orjson.loads(challenge["detail"])
    address = await identities.get_email(ctx, ctx.caller.id)
    if address is None or address not in identity_models.spellings_of(account["email"]):
        return False
    where = {"issuer": account["issuer"], "subject": account["subject"]}
    if await _accounts.across_companies(ctx.services).find_one(where, session=ctx.session) is not None:
        return False
    await _accounts.delete_many(ctx, {"subjectId": ctx.caller.id})
    await _accounts.insert(ctx, {"subjectId": ctx.caller.id, **where})
    name = ctx.services.open_id.registration.name if ctx.services.open_id else account["issuer"]
    await own_second_factor.report_change(
        ctx, ctx.caller, f"{name} was connected", f"From now on your account at {name} signs you in"
    )
    return True


async def find_own(ctx: Context) -> ProviderAccount | None:
    """Return the account by which the caller signs in, or None."""
    return await _accounts.find_one(ctx, {"subjectId": ctx.caller.id})


@transactional
async def unlink(ctx: Context) -> None:
    """Remove the link of the caller. Raises Forbidden without a recent sign-in, NotFound if there is none."""
    await service.require_recent_sign_in(ctx)
    if not await _accounts.delete_many(ctx, {"subjectId": ctx.caller.id}):
        raise NotFound("provider account")


async def remove_of_coach(ctx: Context, event: CoachRemoved | SignInEmailChanged) -> None:
    """Remove the link of a coach who was removed, or signs in by another e-mail address."""
    await _accounts.delete_many(ctx, {"subjectId": event.coach_id})
