"""How many invitations a company may send, to whom and when.

A company sends at most 200 a day in its first week, and `INVITATIONS_PER_DAY` later. A person receives at most one of
a company in 10 minutes and five a week, and none after declining them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NotRequired
from urllib.parse import urlencode

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.errors import Conflict, TooManyRequests
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.people.identities import models

# --- Recipients of invitations as they are stored ---------------------------------------------------------------------


class Recipient(Stored):
    """A person whom the company has invited, by the keyed hash of the e-mail address.

    `sentAt`: when the invitations of the last week were sent, or will be. `declinedAt`: when the person asked for no
    more; `expiresAt`: when the document can be deleted, None if the person has declined.
    """

    addressHash: str
    sentAt: list[datetime]
    expiresAt: datetime | None
    declinedAt: NotRequired[datetime]


# --- Recipients of invitations in the database ------------------------------------------------------------------------


recipients = Documents[Recipient](
    "invitationRecipients",
    (Index(("addressHash",), unique=True),),
    secret=True,
    expire=("expiresAt", 0),
    transfer=NotExported("hashes of addresses under the keys of the service"),
    incidental=True,
)

FIRST_WEEK_PER_DAY, PER_WEEK = 200, 5
SPACING, WEEK = timedelta(minutes=10), timedelta(days=7)
_DAY = timedelta(days=1)


@transactional
async def reserve(ctx: Context, emails: Sequence[str]) -> list[timedelta | None]:
    """Return after which delay an invitation to each address is sent, in the caller's transaction.

    None where none is sent: the person has declined them, or would receive a sixth within a week. Raises
    TooManyRequests if the company has sent too many within a day.
    """
    hashes = [_hash(ctx.services, email) for email in emails]
    known = await _find_known(ctx, emails)
    at, sent, delays = now(), dict[str, list[datetime]](), list[timedelta | None]()
    for each in hashes:
        times, recipient = sent.get(each), known.get(each)
        if times is None:
            times = [] if recipient is None else [time for time in recipient["sentAt"] if time > at - WEEK]
        next_time = max([at, *(time + SPACING for time in times)])
        is_refused = len(times) >= PER_WEEK or (recipient is not None and "declinedAt" in recipient)
        delays.append(None if is_refused else next_time - at)
        if not is_refused:
            sent[each] = [*times, next_time]
    await _count(ctx, len(delays) - delays.count(None))
    stored = [{"addressHash": each, "sentAt": times, "expiresAt": times[-1] + WEEK} for each, times in sent.items()]
    await recipients.upsert_many(ctx, ("addressHash",), stored)
    return delays


async def require_possible(ctx: Context, email: str) -> None:
    """Raise an error if an invitation could not be sent to this address now.

    Conflict if the person has declined invitations of the company, TooManyRequests if the person has received too many.
    """
    recipient = (await _find_known(ctx, [email])).get(_hash(ctx.services, email))
    if recipient is None:
        return
    if "declinedAt" in recipient:
        raise Conflict("This person has asked to receive no more invitations from you", code="INVITATION_DECLINED")
    at = now()
    times = [time for time in recipient["sentAt"] if time > at - WEEK]
    wait = max([timedelta(0), *(time + SPACING - at for time in times)])
    if len(times) >= PER_WEEK:
        wait = max(wait, min(times) + WEEK - at)
    if wait > timedelta(0):
        raise _too_many(ctx, ceil(wait.total_seconds()), "This person has just received an invitation; try again later")


async def _find_known(ctx: Context, emails: Sequence[str]) -> dict[str, Recipient]:
    """Return the recipients among these addresses by their current hash, also those stored under an older key."""
    vault, current = ctx.services.vault, dict[str, str]()
    for email in emails:
        newest, *older = vault.keyed_hashes(models.account_key(email))
        current |= dict.fromkeys((newest, *older), newest)
    stored = await recipients.find(ctx, {"addressHash": {"$in": list(current)}})
    # A person who declined under an older key has declined; else what is stored under the newest key is complete.
    stored.sort(key=lambda each: ("declinedAt" in each, each["addressHash"] == current[each["addressHash"]]))
    return {current[each["addressHash"]]: each for each in stored}


async def _count(ctx: Context, number: int) -> None:
    company_id = ctx.company_id
    is_new = company_id.generation_time > datetime.now(UTC) - WEEK
    maximum = min(FIRST_WEEK_PER_DAY, ctx.services.invitations_per_day) if is_new else ctx.services.invitations_per_day
    sent, seconds = await rate_limits.count(
        ctx.services, "invitations", str(company_id), number=number, window=_DAY, tx=ctx
    )
    if sent > maximum:  # those that are not sent do not count: the transaction is rolled back
        raise _too_many(
            ctx, seconds, f"Your company may send {maximum} invitations a day; send no invitation, or try again later"
        )


def _too_many(ctx: Context, seconds: int, message: str) -> TooManyRequests:
    ctx.services.metrics.rate_limited.labels("invitations").inc()
    return TooManyRequests(message, {"Retry-After": str(seconds)})


# --- Declining -------------------------------------------------------------------------------------------------------


def decline_link(ctx: Context, email: str) -> str:
    """Return the address of the page where the recipient declines further invitations of the company."""
    address_hash = _hash(ctx.services, email)
    signature = ctx.services.vault.sign(_declined(ctx.company_id, address_hash))
    token = f"{ctx.company_id}.{address_hash}.{signature}"
    return f"{ctx.services.base_url}/train/no-invitations?{urlencode({'token': token})}"


def get_decline_token(services: Services, token: str) -> tuple[ObjectId, str] | None:
    """Return the company and the hash of the address that a token was made for; None if it is not valid."""
    company, _, rest = token.partition(".")
    address_hash, _, signature = rest.partition(".")
    company_id = parse_id(company)
    if company_id is None or not services.vault.verify_signature(_declined(company_id, address_hash), signature):
        return None
    return company_id, address_hash


@transactional
async def decline(ctx: Context, address_hash: str) -> None:
    """Stop further invitations of the caller's company to a person."""
    declined = {"declinedAt": now(), "sentAt": [], "expiresAt": None}
    await recipients.upsert(ctx, {"addressHash": address_hash}, declined)


def _declined(company_id: ObjectId, address_hash: str) -> str:
    return f"decline invitations:{company_id}:{address_hash}"


def _hash(services: Services, email: str) -> str:
    return services.vault.keyed_hash(models.account_key(email))
