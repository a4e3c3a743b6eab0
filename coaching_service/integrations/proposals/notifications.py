"""Mail to a coach for whom proposals wait: after a minute, and at most one in 15 minutes for each assistant.

It contains no part of the proposals.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.mail import NewMail
from coaching_service.core.jobs.mail_body import MailBody
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.integrations.proposals import events, store
from coaching_service.integrations.proposals.models import Proposal
from coaching_service.people.team import service as team

SEND = "mail_proposals"
# A coach who is in front of the assistant decides meanwhile.
_DELAY = timedelta(minutes=1)


async def schedule_mail(ctx: Context, proposal: Proposal) -> None:
    """Schedule the mail about a new proposal, in the transaction that stores it."""
    arguments = {"companyId": ctx.company_id, "proposalId": proposal["_id"]}
    await queue.enqueue(ctx, SEND, arguments, after=_DELAY, about=events.only_client(proposal))


async def send_scheduled_mail(services: Services, job: Job) -> RunAgain | None:
    """Send the mail about a proposal that still waits, unless a mail since has included it."""
    with suppress(NotFound):  # the company is deleted
        ctx = Context(services, await team.get_owner(services, job.arguments["companyId"]))
        proposal = await store.find_unmailed(ctx, job.arguments["proposalId"])
        if proposal is None or ctx.caller.company.holds_mail:
            return None
        sender = f"{proposal['coachId']} {proposal['assistant']['_id']}"
        mails, seconds = await rate_limits.count(services, "proposal mail", sender)
        if mails > 1:
            return RunAgain(timedelta(seconds=seconds))
        await _queue_mail(ctx, proposal["_id"])
    return None


@transactional
async def _queue_mail(ctx: Context, proposal_id: ObjectId) -> None:
    proposal = await store.find_unmailed(ctx, proposal_id)
    if proposal is None:
        return
    number = await store.mark_mailed(ctx, proposal)
    coach, company = await team.require_coach(ctx, proposal["coachId"]), ctx.caller.company.name
    path = f"/app/proposals/{proposal_id}" if number == 1 else "/app/proposals?status=pending"
    what = "something" if number == 1 else f"{number} things"
    sentence = f"Your assistant {proposal['assistant']['name']} proposes {what} that you have to approve first."
    body: MailBody = {
        "company": company,
        "name": coach["name"],
        "paragraphs": [sentence],
        "button": "Look at it, and decide",
        "link": f"{ctx.services.base_url}{path}",
        "notes": ["Nothing is done until you approve it, and nothing at all if you do not within 24 hours."],
        "reason": f"You receive this mail because an assistant acts for you at {company}.",
        "settings": None,
    }
    await mail.enqueue_mail(ctx, NewMail(coach["email"], "Your assistant waits for your decision", body))
