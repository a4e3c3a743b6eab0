"""Mail about unread messages: after ten minutes, at most one an hour to each side of a conversation.

The mail goes to the client, or to the client's trainer, else to the owner. It contains no part of the messages.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.mail import NewMail
from coaching_service.core.jobs.mail_body import MailBody, subject_with
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.account import service as account
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer
from coaching_service.people.identities import service as identities
from coaching_service.people.notification_settings import service as notification_settings
from coaching_service.people.team import service as team
from coaching_service.progress.conversation import store
from coaching_service.progress.conversation.events import MessageCreated, MessagesRead
from coaching_service.progress.conversation.models import Side

SEND = "mail_unread_messages"
UNREAD_FOR = timedelta(minutes=10)
INTERVAL = timedelta(hours=1)
_CUSTOMER_FIELDS = (*customers.SCOPE_FIELDS, "name", "surname", "email", "notifications", "customerRoleData.isArchived")


async def schedule_mail(ctx: Context, event: MessageCreated) -> None:
    """Schedule a mail about an unread message, unless one is scheduled for this side of the conversation."""
    conversation = await store.find_conversation(ctx, event.customer_id)
    if conversation is None or (state := conversation["mail"][event.unread_by])["jobId"] is not None:
        return
    delay = UNREAD_FOR
    if state["sentAt"] is not None:
        delay = max(delay, state["sentAt"] + INTERVAL - now())
    arguments = {"companyId": ctx.company_id, "customerId": event.customer_id, "side": event.unread_by}
    job_id = await queue.enqueue(ctx, SEND, arguments, after=delay, about=event.customer_id)
    await store.set_mail(ctx, event.customer_id, event.unread_by, {"jobId": job_id})


async def cancel_mail(ctx: Context, event: MessagesRead) -> None:
    """Cancel the mail that is scheduled for a side that has no unread messages any more."""
    conversation = await store.find_conversation(ctx, event.customer_id)
    if conversation is not None and (job_id := conversation["mail"][event.read_by]["jobId"]) is not None:
        await queue.cancel(ctx, job_id)
        await store.set_mail(ctx, event.customer_id, event.read_by, {"jobId": None})


async def send_scheduled_mail(services: Services, job: Job) -> RunAgain | None:
    """Send the mail that was scheduled for one side of a conversation, if messages are still unread."""
    with suppress(NotFound):  # the company is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        return await _send(Context(services, owner), job.id, job.arguments["customerId"], job.arguments["side"])
    return None


@transactional
async def _send(ctx: Context, job_id: ObjectId, customer_id: ObjectId, side: Side) -> RunAgain | None:
    conversation = await store.find_conversation(ctx, customer_id)
    if conversation is None or conversation["mail"][side]["jobId"] != job_id:
        return None
    unread_since = await store.find_oldest_unread_time(ctx, customer_id, side)
    if unread_since is not None and (remaining := unread_since + UNREAD_FOR - now()) > timedelta(0):
        return RunAgain(remaining)
    is_sent = unread_since is not None and await _queue_mail(ctx, customer_id, side)
    await store.set_mail(ctx, customer_id, side, {"jobId": None} | ({"sentAt": now()} if is_sent else {}))
    return None


async def _queue_mail(ctx: Context, customer_id: ObjectId, side: Side) -> bool:
    """Queue the mail; returns False if there is no one to receive it, or the company's mail is held."""
    if ctx.caller.company.holds_mail:
        return False
    customer = await customers.get_visible(ctx, customer_id, _CUSTOMER_FIELDS)
    if side == "company":
        return await _queue_mail_to_coach(ctx, customer)
    return await _queue_mail_to_client(ctx, customer)


async def _queue_mail_to_client(ctx: Context, customer: Customer) -> bool:
    """Queue the mail to a client, at the address by which the client signs in; archived clients get none."""
    address = await identities.get_email(ctx, customer["_id"]) or customer["email"]
    channels = notification_settings.find_channels(customers.get_notifications(customer), "messages")
    is_wanted = "mail" in channels and not customer["customerRoleData"]["isArchived"]
    if address is None or not is_wanted:
        return False
    company = ctx.caller.company.name
    body: MailBody = {
        "company": company,
        "name": customer["name"],
        "paragraphs": [f"{company} has written to you."],
        "button": "Read your messages",
        "link": f"{ctx.services.base_url}/train/messages",
        "notes": [],
        "reason": f"You receive this mail because you train with {company} and have unread messages.",
        "settings": f"{ctx.services.base_url}/train/settings",
    }
    subject = subject_with(company, "Unread messages from {}", "You have unread messages")
    await mail.enqueue_mail(ctx, NewMail(address, subject, body, customer["_id"]))
    return True


async def _queue_mail_to_coach(ctx: Context, customer: Customer) -> bool:
    """Queue the mail to a client's trainer, else to the owner."""
    if not (await account.get(ctx))["notifications"]["messages"]:
        return False
    trainer_id = customer["customerRoleData"]["assignedTo"]
    coach = await team.require_coach(ctx, trainer_id or ctx.caller.id)
    is_owner, company = coach["role"] == "OWNER", ctx.caller.company.name
    reason = f"You receive this mail because you coach this client at {company}."
    body: MailBody = {
        "company": company,
        "name": coach["name"],
        "paragraphs": [f"{customers.full_name(customer)} has written to you."],
        "button": "Read the messages",
        "link": f"{ctx.services.base_url}/app/customers/{customer['_id']}/messages",
        "notes": [],
        "reason": reason if is_owner else f"{reason} The owner can turn these mails off.",
        "settings": f"{ctx.services.base_url}/app/settings/company" if is_owner else None,
    }
    await mail.enqueue_mail(ctx, NewMail(coach["email"], "Unread messages from a client", body, customer["_id"]))
    return True
