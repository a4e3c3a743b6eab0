"""Resetting a forgotten password by a mailed token, and changing it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.errors import CompanySuspended, Forbidden, SignInRejected
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.mail import MailBody, NewMail, subject_with
from coaching_service.core.jobs.queue import Job
from coaching_service.people import api_keys, assistants
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.identities.service import Identity
from coaching_service.people.sessions.models import KeysToDelete, NewPassword
from coaching_service.people.sessions.service import end_other_sessions, end_sessions, get_principal

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
        if principal is None:
            continue
        if principal.company.holds_mail and principal.role != "OWNER":
            continue  # the token would expire before its mail is sent
        mails, _ = await rate_limits.count(services, "reset mail", str(identity.subject_id))
        if mails <= _RESET_MAILS:
            await _queue_reset_mail(Context(services).acting_as(principal), identity)


async def send_reset_mail(services: Services, identity: Identity) -> bool:
    """Queue a mail with a token to set a password, for the operator; returns False if the user may not sign in.

    Raises CompanySuspended.
    """
    principal = await get_principal(services, identity)
    if principal is None:
        return False
    await _queue_reset_mail(Context(services).acting_as(principal), identity)
    return True


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
        reset_mail = NewMail(
            email, "Set a new password", body, text_addition=addition, is_urgent=ctx.caller.role == "OWNER"
        )
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
        await report_change(ctx, ctx.caller, "with a link that was mailed to you")
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
    await report_change(ctx, ctx.caller, "in your settings")
    return new_password


async def report_change(ctx: Context, user: Principal, how: str) -> None:
    """Queue the mail that tells a user of the company that the password was changed, and which API keys still work."""
    email = await identities.get_mail_address(ctx, user.id)
    if email is None:
        return
    company, is_coach = ctx.caller.company.name, user.role != "CUSTOMER"
    notes = ["If that was not you, set a new password now, and tell your coach."]
    if is_coach:
        names = await api_keys.list_own_names(ctx)
        more = [f"{len(names) - _NAMED_KEYS} more"] if len(names) > _NAMED_KEYS else []
        kept = (
            f"These API keys still work: {', '.join([*names[:_NAMED_KEYS], *more])}."
            if names
            else "You have no API key."
        )
        notes = [kept, "If that was not you, set a new password now, and delete the API keys that you do not know."]
    body: MailBody = {
        "company": company,
        "name": user.name,
        "paragraphs": [
            f"The password with which you sign in at {company} was changed {how}. Other devices were signed out.",
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
