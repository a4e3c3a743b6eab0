"""How a user signs in: passwords, second factors, and accounts at a provider."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict

import orjson
from marshmallow import ValidationError

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import CompanySuspended, Forbidden, NotFound, SignInRejected, invalid_field
from coaching_service.core.fields import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.mail import MailBody, NewMail, subject_with
from coaching_service.core.jobs.queue import Job
from coaching_service.core.open_id import ProviderUser
from coaching_service.people import api_keys, assistants, second_factor, team
from coaching_service.people.identities import models as identity_models
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.identities.service import Attempt, Identity
from coaching_service.people.sessions import service
from coaching_service.people.sessions.models import KeysToDelete, NewPassword
from coaching_service.people.sessions.service import (
    StartedSession,
    end_other_sessions,
    end_sessions,
    get_principal,
    mark_second_factor,
    require_recent_sign_in,
)
from coaching_service.people.team import CoachRemoved, SignInEmailChanged

# --- Resetting a forgotten password by a mailed token, and changing it ------------------------------------------------


RESET_REQUESTED = "password_forgotten"
# Limits within 15 minutes; the limit of a network address is higher because many users may share it.
_RESET_MAILS, _RESET_REQUESTS = 3, 20
_NAMED_KEYS = 20  # in a mail


async def request_password_reset(ctx: Context, email: str, device_tokens: Iterable[str] = ()) -> None:
    """Queue a password reset; whether anyone signs in by `email` is looked up by the worker, so timing reveals nothing.

    Raises TooManyRequests after too many requests from one network address, unless one of `device_tokens` is of a
    device on which the user signed in before.
    """
    tokens = list(device_tokens)
    if not (tokens and await identities.is_known_device(ctx, email, tokens)):
        await rate_limits.limit(ctx.services, "password forgotten", ctx.network_address, _RESET_REQUESTS)
    await queue.enqueue(ctx, RESET_REQUESTED, {"email": email})


async def send_password_reset(services: Services, job: Job) -> None:
    """Queue a mail with a token to set a password for each user who signs in by `email` or claims it.

    Each gets at most 3 in 15 minutes, at the stored address, not at the one in the request.
    """
    for identity in await identities.list_by_email(services, job.arguments["email"]):
        try:
            principal = await get_principal(services, identity)
        except CompanySuspended:
            continue
        if principal is None or (principal.company.holds_mail and principal.role != "OWNER"):
            continue  # else the token would expire before its mail is sent
        mails, _ = await rate_limits.count(services, "reset mail", str(identity.subject_id))
        if mails <= _RESET_MAILS:
            await _queue_reset_mail(Context(services).acting_as(principal), identity)


async def send_reset_mail(services: Services, identity: Identity) -> bool:
    """Queue a mail with a token to set a password, for the operator; returns False if the user may not sign in.

    Raises CompanySuspended.
    """
    if (principal := await get_principal(services, identity)) is not None:
        await _queue_reset_mail(Context(services).acting_as(principal), identity)
    return principal is not None


@transactional
async def _queue_reset_mail(ctx: Context, identity: Identity) -> None:
    email = await identities.get_mail_address(ctx, identity.subject_id)
    if email is None:
        return
    token = await identities.create_reset_token(ctx, identity.subject_id, identity.kind)
    notes = ["If you did not ask for this, do nothing: your password stays as it is."]
    if number := await api_keys.count_own(ctx):
        owned = "1 API key" if number == 1 else f"{number} API keys"
        notes.append(f"You have {owned}, which a new password does not change. On the page you can delete API keys.")
    company, is_client = ctx.caller.company.name, identity.kind == "customer"
    body: MailBody = {
        "company": company,
        "name": ctx.caller.name,
        "paragraphs": ["You can set a new password with this link. It works once, within the hour."],
        "button": "Set a new password",
        "link": f"{ctx.services.base_url}/{'train' if is_client else 'app'}/reset-password?token={token}",
        "notes": notes,
        "reason": "You receive this mail because a new password was requested for this e-mail address, with which you "
        f"sign in at {company}.",
        "settings": None,
    }
    if is_client:
        subject = subject_with(company, "Set a new password for {}", "Set a new password")
        reset_mail = NewMail(email, subject, body, identity.subject_id)
    else:
        addition = f"Applications can send the password with this token to POST /auth/password/reset: {token}"
        is_owner = ctx.caller.role == "OWNER"
        reset_mail = NewMail(email, "Set a new password", body, text_addition=addition, is_urgent=is_owner)
    await mail.enqueue_mail(ctx, reset_mail)


async def reset_password(ctx: Context, token: str, password: str, keys_to_delete: KeysToDelete = "none") -> NewPassword:
    """Set a new password by a mailed token.

    Every session and connected assistant of the user ends, and the count of failed sign-ins is reset; API keys remain
    except `keys_to_delete`. Raises SignInRejected if the token is unknown, used, or older than an hour.
    """
    if (principal := await _find_by_token(ctx, token)) is None:
        raise _reset_rejected()
    password_hash = await hash_password(password)
    email, new_password = await _reset_password(ctx.acting_as(principal), token, password_hash, keys_to_delete)
    await identities.clear_failures(ctx, email)
    return new_password


async def find_user(ctx: Context, token: str) -> tuple[Principal | None, int]:
    """Return the user of a mailed token, and how many API keys they have; None and 0 if the token is not valid."""
    principal = await _find_by_token(ctx, token) if token else None
    return principal, await api_keys.count_own(ctx.acting_as(principal)) if principal else 0


async def _find_by_token(ctx: Context, token: str) -> Principal | None:
    identity = await identities.find_by_reset_token(ctx.services, token)
    return await get_principal(ctx.services, identity) if identity else None


@transactional
async def _reset_password(
    ctx: Context, token: str, password_hash: str, keys_to_delete: KeysToDelete
) -> tuple[str, NewPassword]:
    subject_id = ctx.caller.id
    changed_at = await identities.find_password_change(ctx, subject_id)
    is_first = not await identities.has_password(ctx, subject_id)
    email = await identities.reset_password(ctx, subject_id, token, password_hash)
    if email is None:
        raise _reset_rejected()
    await end_sessions(ctx, subject_id)
    await assistants.revoke_all_of_coach(ctx, subject_id)
    await audit.record(ctx, "password.changed", subject_id, customer_id=audit.own_client(ctx.caller))
    new_password = await _finish(ctx, keys_to_delete, changed_at)
    if not is_first:
        await report_password_change(ctx, ctx.caller, "with a link that was mailed to you")
    return email, new_password


async def _finish(ctx: Context, keys_to_delete: KeysToDelete, changed_at: datetime | None) -> NewPassword:
    """Delete API keys of the caller, whose password was last changed at `changed_at`, and return what remains."""
    if keys_to_delete != "none":
        await api_keys.revoke_own(ctx, changed_at if keys_to_delete == "sinceLastChange" else None)
    device_token = await identities.sign_device(ctx, ctx.caller.id)
    return {"apiKeys": await api_keys.count_own(ctx), "deviceToken": device_token}


def _reset_rejected() -> SignInRejected:
    return SignInRejected("The token is unknown, used or older than an hour; ask for another")


async def change_password(ctx: Context, current: str, new: str, keys_to_delete: KeysToDelete = "none") -> NewPassword:
    """Change the caller's password; every other session of the caller ends, and so does every connected assistant.

    API keys remain except `keys_to_delete`. Raises Forbidden if `current` is wrong, which counts as a failed sign-in of
    the session; TooManyRequests.
    """
    if not await identities.check_password(ctx, ctx.caller.id, current):
        raise Forbidden("The password is wrong", code="WRONG_PASSWORD")
    return await _change_password(ctx, await hash_password(new), keys_to_delete)


@transactional
async def _change_password(ctx: Context, password_hash: str, keys_to_delete: KeysToDelete) -> NewPassword:
    changed_at = await identities.find_password_change(ctx, ctx.caller.id)
    await identities.set_password(ctx, ctx.caller.id, password_hash)
    await end_other_sessions(ctx)
    await assistants.revoke_all_of_coach(ctx, ctx.caller.id)
    await audit.record(ctx, "password.changed", ctx.caller.id, customer_id=audit.own_client(ctx.caller))
    new_password = await _finish(ctx, keys_to_delete, changed_at)
    await report_password_change(ctx, ctx.caller, "in your settings")
    return new_password


async def report_password_change(ctx: Context, user: Principal, how: str) -> None:
    """Queue the mail that tells a user of the company that the password was changed, and which API keys still work."""
    email = await identities.get_mail_address(ctx, user.id)
    if email is None:
        return
    company, is_coach = ctx.caller.company.name, user.role != "CUSTOMER"
    notes = ["If that was not you, set a new password now, and tell your coach."]
    if is_coach:
        names = await api_keys.list_own_names(ctx)
        more = [f"{len(names) - _NAMED_KEYS} more"] if len(names) > _NAMED_KEYS else []
        listed = ", ".join([*names[:_NAMED_KEYS], *more])
        kept = f"These API keys still work: {listed}." if names else "You have no API key."
        notes = [kept, "If that was not you, set a new password now, and delete the API keys that you do not know."]
    body: MailBody = {
        "company": company,
        "name": user.name,
        "paragraphs": [
            f"The password with which you sign in at {company} was changed {how}. Other devices were signed out."
        ],
        "button": "Set a new password",
        "link": f"{ctx.services.base_url}/app/forgotten-password",
        "notes": notes,
        "reason": f"You receive this mail because you sign in at {company} with this e-mail address.",
        "settings": None,
    }
    about = None if is_coach else user.id
    changed = NewMail(email, "Your password was changed", body, about, is_urgent=user.role == "OWNER")
    await mail.enqueue_mail(ctx, changed)


# --- Setting up and removing the second factor of the signed-in user, and one that another user has lost --------------


async def is_recent_sign_in(ctx: Context) -> bool:
    """Return whether the caller has signed in recently enough to change how the caller signs in."""
    try:
        await require_recent_sign_in(ctx)
    except Forbidden:
        return False
    return True


async def begin_authenticator(ctx: Context) -> second_factor.AuthenticatorSecret:
    """Return a new secret of the caller. Raises Forbidden without a recent sign-in."""
    await require_recent_sign_in(ctx)
    return await second_factor.begin(ctx)


async def confirm_authenticator(ctx: Context, code: str) -> second_factor.ConfirmedFactor:
    """Put the secret of the caller into use, and return recovery codes.

    Raises InvalidFields for a wrong code, which counts as a failed sign-in of the session; TooManyRequests after too
    many; Conflict if no secret is being set up; Forbidden without a recent sign-in.
    """
    await require_recent_sign_in(ctx)
    address = await identities.get_email(ctx, ctx.caller.id) or ""
    session = str(ctx.caller.credential_id)
    attempt = Attempt(identity_models.account_key(address), ctx.network_address, session)
    async with ctx.services.sign_in_slot.holding(ctx.network_address):
        await identities.require_few(ctx, attempt)
        codes = await _confirm_authenticator(ctx, code)
        if codes is None:
            await identities.count(ctx, attempt)
            raise invalid_field("code", "is not a code of the application", code="WRONG_CODE")
    return codes


@transactional
async def _confirm_authenticator(ctx: Context, code: str) -> second_factor.ConfirmedFactor | None:
    if (codes := await second_factor.confirm(ctx, code)) is not None:
        await mark_second_factor(ctx, ctx.caller.id, ctx.caller.credential_id)
        sentence = "From now on a code is needed to sign in"
        await report_sign_in_change(ctx, ctx.caller, "Two-step sign-in is on", sentence)
    return codes


async def begin_passkey(ctx: Context) -> second_factor.PasskeyOptions:
    """Return what a browser needs to create a passkey of the caller. Raises Forbidden without a recent sign-in."""
    await require_recent_sign_in(ctx)
    return await second_factor.begin_passkey(ctx)


async def add_passkey(ctx: Context, name: str, credential: second_factor.NewCredential) -> second_factor.Passkey:
    """Store a passkey of the caller.

    Raises Forbidden without a recent sign-in, and what verifying and adding it raise.
    """
    await require_recent_sign_in(ctx)
    return await _add_passkey(ctx, name, await second_factor.verify_new_passkey(ctx, credential))


@transactional
async def _add_passkey(ctx: Context, name: str, key: second_factor.NewPublicKey) -> second_factor.Passkey:
    passkey = await second_factor.add_passkey(ctx, name, key)
    await mark_second_factor(ctx, ctx.caller.id, ctx.caller.credential_id)
    await report_sign_in_change(ctx, ctx.caller, "A passkey was added", "From now on you can sign in with a passkey")
    return passkey


@transactional
async def remove_passkey(ctx: Context, passkey_id: ObjectId) -> None:
    """Remove a passkey of the caller; without another second factor no session counts as one with it.

    Raises Forbidden without a recent sign-in, NotFound.
    """
    await require_recent_sign_in(ctx)
    await second_factor.remove_passkey(ctx, passkey_id)
    if not await second_factor.has_any(ctx, ctx.caller.id):
        await mark_second_factor(ctx, ctx.caller.id, None)
    await report_sign_in_change(ctx, ctx.caller, "A passkey was removed", "One of your passkeys no longer signs in")


@transactional
async def remove_second_factor(ctx: Context) -> None:
    """Remove every second factor of the caller; no session counts as one with it.

    Raises Forbidden without a recent sign-in, NotFound if there is none.
    """
    await require_recent_sign_in(ctx)
    await _remove_second_factor(ctx, ctx.caller)
    await mark_second_factor(ctx, ctx.caller.id, None)


async def reset_of_employee(ctx: Context, employee_id: ObjectId) -> None:
    """Remove every second factor of an employee, and end the employee's sessions. Raises NotFound for no employee."""
    employee = await team.get_employee(ctx, employee_id)
    await reset_second_factor(ctx, team.to_principal(employee, ctx.caller.company, "session", employee_id))


@transactional
async def reset_second_factor(ctx: Context, user: Principal, operator: str | None = None) -> None:
    """Remove every second factor of another user of the company, and end the user's sessions; without one do nothing.

    `operator` is who does it on the command line, if not the caller. Raises NotFound then, if there is none.
    """
    if operator is not None or await second_factor.has_any(ctx, user.id):
        await _remove_second_factor(ctx, user, operator)
        await end_sessions(ctx, user.id)


async def _remove_second_factor(ctx: Context, user: Principal, operator: str | None = None) -> None:
    if not await second_factor.remove(ctx, user.id):
        raise NotFound("second factor")
    if operator is None:
        await audit.record(ctx, "second_factor.disabled", user.id, customer_id=audit.own_client(user))
    else:
        await audit.record_operator(ctx, operator, "person.secondFactorReset", user.id)
    sentence = "From now on the password alone is enough to sign in"
    await report_sign_in_change(ctx, user, "Two-step sign-in is off", sentence)


async def remove_of_removed_coach(ctx: Context, event: CoachRemoved) -> None:
    """Remove every second factor of a coach who was removed."""
    await second_factor.remove(ctx, event.coach_id)


async def report_sign_in_change(ctx: Context, user: Principal, subject: str, sentence: str) -> None:
    """Queue the mail that tells a user of the company that the way to sign in was changed."""
    email = await identities.get_mail_address(ctx, user.id)
    if email is None:
        return
    company = ctx.caller.company.name
    by = "" if user.id == ctx.caller.id else f" {ctx.caller.name} has changed this."
    settings = "app/settings/security" if user.is_coach else "train/settings/security"
    body: MailBody = {
        "company": company,
        "name": user.name,
        "paragraphs": [f"{sentence} at {company}.{by}"],
        "button": "Open the settings",
        "link": f"{ctx.services.base_url}/{settings}",
        "notes": [
            "If you do not expect this, set a new password now, and tell your coach or the owner of the company."
        ],
        "reason": f"You receive this mail because you sign in at {company} with this e-mail address.",
        "settings": None,
    }
    about = None if user.is_coach else user.id
    await mail.enqueue_mail(ctx, NewMail(email, subject, body, about, is_urgent=user.role == "OWNER"))


# --- Accounts at the OpenID provider by which coaches and clients sign in, once they are linked -----------------------
# An account is linked to who signs in by its verified e-mail address, after that user has signed in once with the
# password, and with the second factor if there is one. Then its subject at the issuer identifies it, not the address.


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


async def sign_in_by_provider(ctx: Context, user: ProviderUser, device: str) -> StartedSession | None:
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
    return await service.start_web(ctx, principal, identity.kind, device, has_second_factor=True)


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


def sign_linkable(ctx: Context, user: ProviderUser) -> str:
    """Return a text for the browser that has signed in at the provider, to link the account within 5 minutes."""
    linkable: _Linkable = {"issuer": user.issuer, "subject": user.subject, "email": user.email}
    return second_factor.create_challenge(ctx.services, _LINK, detail=orjson.dumps(linkable).decode())


@transactional
async def link_account(ctx: Context, linkable: str) -> bool:
    """Link the account of the browser to the caller, who has just signed in, instead of an earlier one.

    Returns False if there is none, or if the caller does not sign in by its e-mail address.
    """
    if (challenge := await second_factor.find_challenge(ctx.services, _LINK, linkable)) is None:
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
    sentence = f"From now on your account at {name} signs you in"
    await report_sign_in_change(ctx, ctx.caller, f"{name} was connected", sentence)
    return True


async def find_linked_account(ctx: Context) -> ProviderAccount | None:
    """Return the account by which the caller signs in, or None."""
    return await _accounts.find_one(ctx, {"subjectId": ctx.caller.id})


@transactional
async def unlink_account(ctx: Context) -> None:
    """Remove the link of the caller. Raises Forbidden without a recent sign-in, NotFound if there is none."""
    await service.require_recent_sign_in(ctx)
    if not await _accounts.delete_many(ctx, {"subjectId": ctx.caller.id}):
        raise NotFound("provider account")


async def unlink_account_of_coach(ctx: Context, event: CoachRemoved | SignInEmailChanged) -> None:
    """Remove the link of a coach who was removed, or signs in by another e-mail address."""
    await _accounts.delete_many(ctx, {"subjectId": event.coach_id})
