"""Webhooks and mail of a suspended company pause; when it resumes, nothing is lost, and nothing is sent twice."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import Operator
from coaching_service.people.customers import batch
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.webhook_deliveries import NewCoach, received, settled, subscribe
from tests.support.webhooks import Receiver, receiving

BODY: MailBody = {
    "company": "Company",
    "name": "Ana",
    "paragraphs": ["Hello"],
    "button": "Read it",
    "link": "http://coaching.test/train",
    "notes": [],
    "reason": "You train with Company.",
    "settings": None,
}


def count_mails(services: Services, address: str) -> int:
    """How many mails to an address have been sent."""
    assert isinstance(services.mail_sender, mail.FolderMailSender)
    return sum(address in file.read_text() for file in services.mail_sender.folder.glob("*.eml"))


async def test_deliveries_and_mail_wait_for_the_end_of_a_suspension(
    new_coach: NewCoach, coach: CoachClient, receiver: Receiver, own_services: Services
) -> None:
    """Another company shows that what would have been sent by then has not been sent.

    Deliveries failed before the suspension, whose time is not counted: the next failure does not disable the webhook.
    """
    operator, company_id, db = Operator(own_services, "root"), coach.ctx.company_id, own_services.db
    other, address = await new_coach(), f"{ObjectId()}@example.com"
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Ana")
    await settled(coach, webhook, "succeeded")
    failing = {"failingSince": now() - timedelta(days=5)}
    await db["webhooks"].update_one({"_id": ObjectId(webhook["_id"])}, {"$set": failing})

    await administration.suspend_company(operator, company_id, "not paid")
    async with receiving() as receiver_of_other:
        await subscribe(other, receiver_of_other)
        await other.create_customer("Eva")
        await received(receiver_of_other, 1)  # now the dispatcher has seen the suspension
        for name in ("Bo", "Cai"):
            await batch.create_customer(coach.ctx, {"name": name})
        await mail.enqueue_mail(coach.ctx, NewMail(address, "Hello", BODY))
        await other.create_customer("Fay")
        await received(receiver_of_other, 2)
    paused = {"companyId": company_id, "kind": mail.SEND, "isPaused": True}
    await until(lambda: db["jobs"].find_one(paused), "the mail pauses", 60)
    assert receiver.sequence == [1]
    assert count_mails(own_services, address) == 0

    receiver.respond = lambda _message, before: 200 if before else 500
    await administration.resume_company(operator, company_id)
    await settled(coach, webhook, "succeeded", 3)
    await until(lambda: count_mails(own_services, address), "the mail is sent", 60)
    assert list(dict.fromkeys(receiver.sequence)) == [1, 2, 3]
    assert sorted(receiver.count_by_id().values()) == [1, 2, 2]
    assert count_mails(own_services, address) == 1
    assert (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()["isActive"] is True
