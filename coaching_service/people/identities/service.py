"""Who can sign in: addresses and passwords, one identity across the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from coaching_service.core import rate_limits
from coaching_service.core.auth.secrets import new_token, token_hash
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import ClientDisconnected, ServiceError, SignInRejected
from coaching_service.core.ids import ObjectId
from coaching_service.people.identities import store
from coaching_service.people.identities.passwords import verify_password

ACCOUNT_FAILURES, ADDRESS_FAILURES = 6, 30
_ACCOUNT, _ADDRESS = "account", "address"

SubjectKind = Literal["coach", "customer"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom an address signs in, and in which company."""

    subject_id: ObjectId
    company_id: ObjectId
    kind: SubjectKind


async def add(ctx: Context, subject_id: ObjectId, kind: SubjectKind, address: str, password_hash: str | None) -> None:
    """Let the principal's colleague or client `subject_id` sign in by `address`.

    Raises Conflict when the address is already used for sign-in, in any company.
    """
    await store.add(ctx, subject_id, kind, address, password_hash)


async def find_by_email(services: Services, address: str) -> Identity | None:
    """Whom `address` signs in, or None."""
    found = await store.by_address(services, address)
    return None if found is None else _identity(found)


async def verify_sign_in(ctx: Context, address: str, password: str) -> Identity:
    """Whom this address and password sign in.

    Raises SignInRefused, the same for an unknown address and a wrong password; and TooManyRequests from the 6th
    failure of an account or the 30th of a network address within 15 minutes. Each process looks at one password at a
    time, and at the failures before each, so that guesses made at the same time do not slip through. Whoever has hung
    up while waiting is not looked at: HungUp.
    """
    async with ctx.services.sign_in_lock:
        if ctx.is_disconnected():
            raise ClientDisconnected()
        _, found = await gather_reads(ctx, _require_few_failures(ctx, address), store.by_address(ctx.services, address))
        if await verify_password(password, found["passwordHash"] if found else None) and found is not None:
            return _identity(found)
        raise await _failed(ctx, address)


async def _require_few_failures(ctx: Context, address: str) -> None:
    (of_account, account_wait), (of_address, address_wait) = await gather_reads(
        ctx,
        rate_limits.seen(ctx.services, _ACCOUNT, store.normal(address)),
        rate_limits.seen(ctx.services, _ADDRESS, ctx.network_address),
    )
    if of_account >= ACCOUNT_FAILURES or of_address >= ADDRESS_FAILURES:
        raise rate_limits.too_many_requests(max(account_wait, address_wait))


async def _failed(ctx: Context, address: str) -> ServiceError:
    """Count a failure; gives the error it is answered with."""
    of_account, account_wait = await rate_limits.count(ctx.services, _ACCOUNT, store.normal(address))
    of_address, address_wait = await rate_limits.count(ctx.services, _ADDRESS, ctx.network_address)
    if of_account >= ACCOUNT_FAILURES or of_address >= ADDRESS_FAILURES:
        return rate_limits.too_many_requests(max(account_wait, address_wait))
    return sign_in_rejected()


def sign_in_rejected() -> SignInRejected:
    """The one answer to every refused sign-in."""
    return SignInRejected("The e-mail address or the password is wrong")


async def clear_failures(ctx: Context, address: str) -> None:
    """Forget an account's failures: the sign-in succeeded."""
    await rate_limits.forget(ctx.services, _ACCOUNT, store.normal(address))


async def check_password(ctx: Context, subject_id: ObjectId, password: str) -> bool:
    """Whether `password` is that of a coach or client of the company, counted like a sign-in."""
    found = await store.by_subject(ctx, subject_id)
    if found is None:
        return False
    try:
        await verify_sign_in(ctx, found["address"], password)
    except SignInRejected:
        return False
    await clear_failures(ctx, found["address"])
    return True


async def get_email(ctx: Context, subject_id: ObjectId) -> str | None:
    """The address by which a coach or client of the company signs in, or None."""
    found = await store.by_subject(ctx, subject_id)
    return found["address"] if found else None


async def set_password(ctx: Context, subject_id: ObjectId, password_hash: str) -> bool:
    """Give a coach or client of the company a password, in the caller's transaction; no right to set one by mail is
    left. Gives whether they have a sign-in at all."""
    await store.remove_resets(ctx, subject_id)
    return await store.set_password(ctx, subject_id, password_hash)


async def change_email(ctx: Context, subject_id: ObjectId, address: str) -> bool:
    """Let a coach sign in by another address, in the caller's transaction; no right to set a password that was mailed
    to the one before is left. Gives whether they have no password yet, and so need another such mail.

    Raises Conflict when the address is used already.
    """
    before = await store.by_subject(ctx, subject_id)
    if before is None or before["address"] == store.normal(address):
        return False
    await store.set_address(ctx, subject_id, address)
    await store.remove_resets(ctx, subject_id)
    return before["passwordHash"] is None


async def remove(ctx: Context, subject_id: ObjectId) -> None:
    """Take a coach's or client's sign-in away."""
    await store.remove(ctx, subject_id)


async def create_reset_token(ctx: Context, subject_id: ObjectId, kind: SubjectKind) -> str:
    """A single-use token by which a coach or client of the company sets a password within the hour."""
    token = new_token()
    await store.add_reset(ctx, subject_id, kind, token_hash(token))
    return token


async def find_by_reset_token(services: Services, token: str) -> Identity | None:
    """Whose password this token sets, or None when it is unknown or has ended."""
    found = await store.find_reset(services, token_hash(token))
    return None if found is None else _identity(found)


async def reset_password(ctx: Context, subject_id: ObjectId, token: str, password_hash: str) -> bool:
    """Set the password and use the token up, in the caller's transaction; False when it was used meanwhile."""
    return await store.use_resets(ctx, subject_id, token_hash(token)) and await store.set_password(
        ctx, subject_id, password_hash
    )


def _identity(found: Document) -> Identity:
    return Identity(found["subjectId"], found["companyId"], found["kind"])
