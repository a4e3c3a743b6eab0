"""Setting up and removing the second factor of the signed-in user, and removing one that another user has lost."""

from __future__ import annotations

from coaching_service.core import audit
from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.errors import Forbidden, NotFound, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail
from coaching_service.people import team
from coaching_service.people.identities import models as identity_models
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.service import Attempt
from coaching_service.people.second_factor import models, passkeys, service
from coaching_service.people.sessions.service import end_sessions, mark_second_factor, require_recent_sign_in
from coaching_service.people.team import CoachRemoved


async def is_recent(ctx: Context) -> bool:
    """Return whether the caller has signed in recently enough to change how the caller signs in."""
    try:
        await require_recent_sign_in(ctx)
    except Forbidden:
        return False
    return True


async def begin(ctx: Context) -> models.AuthenticatorSecret:
    """Return a new secret of the caller. Raises Forbidden without a recent sign-in."""
    await require_recent_sign_in(ctx)
    return await service.begin(ctx)


async def confirm(ctx: Context, code: str) -> models.ConfirmedFactor:
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
        codes = await _confirm(ctx, code)
        if codes is None:
            await identities.count(ctx, attempt)
            raise invalid_field("code", "is not a code of the application", code="WRONG_CODE")
    return codes


@transactional
async def _confirm(ctx: Context, code: str) -> models.ConfirmedFactor | None:
    if (codes := await service.confirm(ctx, code)) is not None:
        await mark_second_factor(ctx, ctx.caller.id, ctx.caller.credential_id)
        await report_change(ctx, ctx.caller, "Two-step sign-in is on", "From now on a code is needed to sign in")
    return codes


async def begin_passkey(ctx: Context) -> models.PasskeyOptions:
    """Return what a browser needs to create a passkey of the caller. Raises Forbidden without a recent sign-in."""
    await require_recent_sign_in(ctx)
    return await passkeys.begin(ctx)


async def add_passkey(ctx: Context, name: str, credential: models.NewCredential) -> models.Passkey:
    """Store a passkey of the caller.

    Raises Forbidden without a recent sign-in, and what passkeys.verify_new and passkeys.add raise.
    """
    await require_recent_sign_in(ctx)
    return await _add_passkey(ctx, name, await passkeys.verify_new(ctx, credential))


@transactional
async def _add_passkey(ctx: Context, name: str, key: models.NewPublicKey) -> models.Passkey:
    passkey = await passkeys.add(ctx, name, key)
    await mark_second_factor(ctx, ctx.caller.id, ctx.caller.credential_id)
    await report_change(ctx, ctx.caller, "A passkey was added", "From now on you can sign in with a passkey")
    return passkey


@transactional
async def remove_passkey(ctx: Context, passkey_id: ObjectId) -> None:
    """Remove a passkey of the caller; without another second factor no session counts as one with it.

    Raises Forbidden without a recent sign-in, NotFound.
    """
    await require_recent_sign_in(ctx)
    await passkeys.remove(ctx, passkey_id)
    if not await service.has_any(ctx, ctx.caller.id):
        await mark_second_factor(ctx, ctx.caller.id, None)
    await report_change(ctx, ctx.caller, "A passkey was removed", "One of your passkeys no longer signs in")


@transactional
async def remove(ctx: Context) -> None:
    """Remove every second factor of the caller; no session counts as one with it.

    Raises Forbidden without a recent sign-in, NotFound if there is none.
    """
    await require_recent_sign_in(ctx)
    await _remove(ctx, ctx.caller)
    await mark_second_factor(ctx, ctx.caller.id, None)


async def reset_of_employee(ctx: Context, employee_id: ObjectId) -> None:
    """Remove every second factor of an employee, and end the employee's sessions. Raises NotFound for no employee."""
    employee = await team.get(ctx, employee_id)
    await reset(ctx, team.to_principal(employee, ctx.caller.company, "session", employee_id))


@transactional
async def reset(ctx: Context, user: Principal, operator: str | None = None) -> None:
    """Remove every second factor of another user of the company, and end the user's sessions; without one do nothing.

    `operator` is who does it on the command line, if not the caller. Raises NotFound then, if there is none.
    """
    if operator is not None or await service.has_any(ctx, user.id):
        await _remove(ctx, user, operator)
        await end_sessions(ctx, user.id)


async def _remove(ctx: Context, user: Principal, operator: str | None = None) -> None:
    if not await service.remove(ctx, user.id):
        raise NotFound("second factor")
    if operator is None:
        await audit.record(ctx, "second_factor.disabled", user.id, customer_id=audit.own_client(user))
    else:
        await audit.record_operator(ctx, operator, "person.secondFactorReset", user.id)
    await report_change(ctx, user, "Two-step sign-in is off", "From now on the password alone is enough to sign in")


async def remove_of_removed_coach(ctx: Context, event: CoachRemoved) -> None:
    """Remove every second factor of a coach who was removed."""
    await service.remove(ctx, event.coach_id)


async def report_change(ctx: Context, user: Principal, subject: str, sentence: str) -> None:
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
