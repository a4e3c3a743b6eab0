"""The mail with the token by which a coach or client confirms the e-mail address."""

from __future__ import annotations

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import NewMail
from coaching_service.core.jobs.mail_body import MailBody
from coaching_service.people.identities import service as identities

MAILS = 3  # to one user within 15 minutes
_SENDER = "Coaching service"


@transactional
async def queue_mail(ctx: Context) -> bool:
    """Queue a mail with a token to confirm the e-mail address of the caller.

    It contains no text that the user has chosen, since the address may be a stranger's. Returns False if there is
    nothing to confirm.
    """
    confirmation = await identities.sign_confirmation(ctx, ctx.caller.id)
    if confirmation is None:
        return False
    token = confirmation.token
    body: MailBody = {
        "company": _SENDER,
        "name": confirmation.address,
        "paragraphs": ["Confirm that this is your e-mail address. The link works for a week."],
        "button": "Confirm your e-mail address",
        "link": f"{ctx.services.base_url}/app/confirm-email?token={token}",
        "notes": ["If you did not sign up, do nothing: the address is not used without your confirmation."],
        "reason": "You receive this mail because an account was created with this e-mail address.",
        "settings": None,
    }
    addition = f"Applications can send this token to POST /auth/confirm-email: {token}"
    is_owner = ctx.caller.role == "OWNER"
    await mail.enqueue_mail(
        ctx,
        NewMail(confirmation.address, "Confirm your e-mail address", body, text_addition=addition, is_urgent=is_owner),
    )
    return True


async def send_again(ctx: Context) -> bool:
    """Queue another mail for the caller; returns False if the address is already confirmed.

    Raises TooManyRequests from the fourth mail within 15 minutes.
    """
    if await identities.is_email_confirmed(ctx, ctx.caller.id):
        return False
    await rate_limits.limit(ctx.services, "confirmation mail", str(ctx.caller.id), MAILS)
    return await queue_mail(ctx)
