"""Sign-in identities: the e-mail addresses and passwords of coaches and clients, unique across the service.

An e-mail address is confirmed by a token that was mailed to it, or by the operator. An unconfirmed one can be used to
sign in, but is lost as soon as another user confirms it. Of two unconfirmed users the first signs in by the address: an
employee who is invited meanwhile claims it, and receives it with the mailed token.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth import new_token, token_hash
from coaching_service.core.database.context import Context, Services, conflict_if_taken, gather_reads
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.errors import ClientDisconnected, Conflict, Forbidden, SignInRejected
from coaching_service.core.ids import ObjectId
from coaching_service.people.identities import models
from coaching_service.people.identities.passwords import verify_password

# --- Identities, claims and resets in the database --------------------------------------------------------------------


RESET_LIFETIME = timedelta(hours=1)

identities = Documents[models.StoredIdentity](
    "identities",
    (Index(("subjectId",), unique=True),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("address",), unique=True),),
    cross_company_reason="an identity is found by e-mail address before its company is known",
    placement=Unsharded("an e-mail address is unique among all companies, and found before its company is known"),
    transfer=NotExported("passwords and sign-in addresses"),
)
claims = Documents[models.IdentityClaim](
    "identityClaims",
    (Index(("subjectId",), unique=True),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("address",)),),
    cross_company_reason="the users who claim an e-mail address are found before their companies are known",
    placement=Unsharded("found by the e-mail address, like identities"),
    transfer=NotExported("sign-in addresses"),
)
resets = Documents[models.PasswordReset](
    "passwordResets",
    (Index(("subjectId",)),),
    client_field="subjectId",
    secret=True,
    expire=("createdAt", int(RESET_LIFETIME.total_seconds())),
    global_indexes=(Index(("tokenHash",), unique=True),),
    cross_company_reason="a reset is found by the hash of its token before its company is known",
    placement=Unsharded("a reset is found by its token, and exists for an hour"),
    transfer=NotExported("tokens"),
)


# --- Identities ------------------------------------------------------------------------------------------------------


async def _require_other_spellings_free(ctx: Context, subject_id: ObjectId, email: str) -> None:
    """Raise Conflict if another identity has the address in another spelling; the index finds the same one."""
    if others := [each for each in models.spellings_of(email) if each != models.normalize_email(email)]:
        where = {"address": {"$in": others}, "subjectId": {"$ne": subject_id}}
        if await identities.across_companies(ctx.services).find_one(where, {"_id": 1}, session=ctx.session):
            raise _email_taken()


def _email_taken() -> Conflict:
    return Conflict("This e-mail address is already used to sign in", code="EMAIL_TAKEN")


async def _can_be_claimed(ctx: Context, email: str) -> bool:
    """Return whether an identity uses an e-mail address that it has not confirmed, and is no coach of the company."""
    where = {"address": {"$in": models.spellings_of(email)}, "isConfirmed": False}
    fields = {"companyId": 1, "kind": 1}
    identity = await identities.across_companies(ctx.services).find_one(where, fields, session=ctx.session)
    return identity is not None and (identity["companyId"], identity["kind"]) != (ctx.company_id, "coach")


async def _find_by_email(services: Services, email: str) -> models.StoredIdentity | None:
    """Return the identity with an e-mail address, in any spelling and company, or None."""
    collection = identities.across_companies(services)
    for address in models.spellings_of(email):
        identity: Any = await collection.find_one({"address": address})
        if identity is not None:
            return identity  # type: ignore[no-any-return]  # the driver's documents are untyped
    return None


async def _find_by_subject(ctx: Context, subject_id: ObjectId) -> models.StoredIdentity | None:
    """Return the identity of a coach or client of the company, or None."""
    fields = ("address", "passwordHash", "kind", "isConfirmed", "companyId", "subjectId")
    return await identities.find_one(ctx, {"subjectId": subject_id}, (*fields, "passwordChangedAt", "createdAt"))


async def _find_of_company(services: Services, company_id: ObjectId, subject_id: ObjectId) -> Any:
    """Return the identity, a StoredIdentity, of a coach or client before there is a caller, or None."""
    return await identities.across_companies(services).find_one({"companyId": company_id, "subjectId": subject_id})


async def remove(ctx: Context, subject_id: ObjectId) -> None:
    """Delete the identity, claim and resets of a coach or client of the company."""
    await identities.delete_many(ctx, {"subjectId": subject_id})
    await claims.delete_many(ctx, {"subjectId": subject_id})
    await resets.delete_many(ctx, {"subjectId": subject_id})


# --- Failed sign-ins: counted for a device that signed in before, else for the account and for the network address ----


ACCOUNT_FAILURES, NETWORK_FAILURES = 6, 30
# The names under which failures are counted; the last one: failures of an account from a network address.
_DEVICE, _ACCOUNT, _NETWORK, _ACCOUNT_IN_NETWORK = "device", "account", "address", "account at address"
_CODES = "second factor"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whose failures a sign-in counts to: of `device` or, if it is None, of the account and the network.

    `codes_of`: the coach or client whose second factor is asked for. Wrong codes are also counted apart, whatever
    the device: only those who know the password can lock this counter, and new devices do not renew it.
    """

    account: str
    network: str
    device: str | None = None
    codes_of: ObjectId | None = None

    @property
    def limits(self) -> list[tuple[str, str, int]]:
        """The counters of failures: kind, name, and the number from which they refuse."""
        codes = [] if self.codes_of is None else [(_CODES, str(self.codes_of), ACCOUNT_FAILURES)]
        if self.device is not None:
            return [(_DEVICE, self.device, ACCOUNT_FAILURES), *codes]
        return [(_ACCOUNT, self.account, ACCOUNT_FAILURES), (_NETWORK, self.network, NETWORK_FAILURES), *codes]

    @property
    def account_in_network(self) -> str:
        """The name of the account at its network address."""
        return f"{self.network} {self.account}"


async def require_few(ctx: Context, attempt: Attempt) -> None:
    """Raise TooManyRequests if too many failures have been counted."""
    counts = await gather_reads(
        ctx, *(rate_limits.get_count(ctx.services, kind, name) for kind, name, _ in attempt.limits)
    )
    _require_few(ctx, attempt, counts)


async def count(ctx: Context, attempt: Attempt) -> None:
    """Count a failure. Raises TooManyRequests if there are too many then."""
    counts = [await rate_limits.count(ctx.services, kind, name) for kind, name, _ in attempt.limits]
    if attempt.device is None:
        await rate_limits.count(ctx.services, _ACCOUNT_IN_NETWORK, attempt.account_in_network)
    _require_few(ctx, attempt, counts)


async def clear(ctx: Context, attempt: Attempt) -> None:
    """Reset the failures of an account and a device; the account's no longer count to the network address.

    So users who share a network address and sign in after some failures do not lock it for one another.
    """
    await rate_limits.reset(ctx.services, _ACCOUNT, attempt.account)
    if attempt.device is not None:
        await rate_limits.reset(ctx.services, _DEVICE, attempt.device)
    if attempt.codes_of is not None:
        await rate_limits.reset(ctx.services, _CODES, str(attempt.codes_of))
    if number := await rate_limits.take(ctx.services, _ACCOUNT_IN_NETWORK, attempt.account_in_network):
        await rate_limits.count(ctx.services, _NETWORK, attempt.network, number=-number)


def _require_few(ctx: Context, attempt: Attempt, counts: list[tuple[int, int]]) -> None:
    full = [number >= maximum for (number, _), (_, _, maximum) in zip(counts, attempt.limits, strict=True)]
    if any(full):
        ctx.services.metrics.sign_in_failures.labels("too_many_failures").inc()
        raise rate_limits.too_many_requests(ctx.services, "sign-in", max(seconds for _, seconds in counts))


CONFIRMATION_LIFETIME = timedelta(days=7)
_CONFIRMATION = re.compile(
    r"(?P<company>[0-9a-f]{24})\.(?P<subject>[0-9a-f]{24})\.(?P<until>[0-9]{1,12})\.(?P<signature>[\w-]+)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The coach or client who signs in by an e-mail address, and the company."""

    subject_id: ObjectId
    company_id: ObjectId
    kind: models.SubjectKind


@dataclass(frozen=True, slots=True)
class EmailChange:
    """The result of changing an e-mail address: whether it differs, and whether the user has set a password."""

    changed: bool
    has_password: bool


# --- Identities ------------------------------------------------------------------------------------------------------


async def create(
    ctx: Context,
    subject_id: ObjectId,
    kind: models.SubjectKind,
    email: str,
    password_hash: str | None,
    *,
    is_confirmed: bool = False,
) -> None:
    """Allow a coach or client of the company to sign in by `email`, in the caller's transaction.

    With `is_confirmed`, an unconfirmed identity with the same address is removed, whichever company it belongs to.
    Without a password, a token is mailed to the user: an address that an unconfirmed identity uses is claimed then.
    Raises Conflict if the address is already used to sign in, Forbidden in a sandbox.
    """
    if ctx.caller.company.is_sandbox:
        raise Forbidden("No user can sign in to a sandbox", code="SANDBOX")
    if is_confirmed:
        where = {"address": {"$in": models.spellings_of(email)}, "isConfirmed": False}
        of_all = identities.across_companies(ctx.services)
        if (displaced := await of_all.find_one_and_delete(where, session=ctx.session)) is not None:
            subject = {"companyId": displaced["companyId"], "subjectId": displaced["subjectId"]}
            await resets.across_companies(ctx.services).delete_many(subject, session=ctx.session)
            await ctx.publish(models.IdentityDisplaced(displaced["companyId"], displaced["subjectId"]))
    elif password_hash is None and await _can_be_claimed(ctx, email):
        await claims.insert(ctx, {"address": models.normalize_email(email), "kind": kind, "subjectId": subject_id})
        return
    await _require_other_spellings_free(ctx, subject_id, email)
    identity = {
        "address": models.normalize_email(email),
        "kind": kind,
        "subjectId": subject_id,
        "passwordHash": password_hash,
        "isConfirmed": is_confirmed,
    }
    with conflict_if_taken(_email_taken()):
        await identities.insert(ctx, identity)


async def find_by_email(services: Services, email: str) -> Identity | None:
    """Return the identity with an e-mail address, or None."""
    stored = await _find_by_email(services, email)
    return None if stored is None else _to_identity(stored)


async def find_of_subject(services: Services, company_id: ObjectId, subject_id: ObjectId) -> Identity | None:
    """Return the identity of a coach or client before there is a caller, or None."""
    stored = await _find_of_company(services, company_id, subject_id)
    return None if stored is None else _to_identity(stored)


async def find_holder(services: Services, email: str, company_id: ObjectId | None) -> Identity | None:
    """Return who signs in by an e-mail address; not one who has not confirmed it, unless a coach of the company."""
    stored = await _find_by_email(services, email)
    is_own = stored is not None and (stored["companyId"], stored["kind"]) == (company_id, "coach")
    if stored is None or not (is_own or stored.get("isConfirmed", True)):
        return None
    return _to_identity(stored)


async def list_by_email(services: Services, email: str) -> list[Identity]:
    """Return the identity with an e-mail address, and the users who claim the address."""
    stored = await _find_by_email(services, email)
    claimed = claims.across_companies(services).find({"address": {"$in": models.spellings_of(email)}})
    holders: list[Any] = [*([] if stored is None else [stored]), *await claimed.to_list(None)]
    return [_to_identity(holder) for holder in holders]


async def get_email(ctx: Context, subject_id: ObjectId) -> str | None:
    """Return the e-mail address by which a coach or client of the company signs in, or None."""
    stored = await _find_by_subject(ctx, subject_id)
    return stored["address"] if stored else None


async def get_mail_address(ctx: Context, subject_id: ObjectId) -> str | None:
    """Return the e-mail address by which a coach or client signs in, or which the coach claims, or None."""
    holder = await _find_by_subject(ctx, subject_id) or await claims.find_one(ctx, {"subjectId": subject_id})
    return holder["address"] if holder else None


async def is_email_confirmed(ctx: Context, subject_id: ObjectId) -> bool:
    """Return whether a coach or client of the company signs in by a confirmed e-mail address."""
    stored = await _find_by_subject(ctx, subject_id)
    return stored is not None and stored.get("isConfirmed", True)


async def has_password(ctx: Context, subject_id: ObjectId) -> bool:
    """Return whether a coach or client of the company has set a password."""
    stored = await _find_by_subject(ctx, subject_id)
    return stored is not None and stored["passwordHash"] is not None


async def change_email(ctx: Context, subject_id: ObjectId, email: str) -> EmailChange:
    """Change the e-mail address of a coach of the company, in the caller's transaction.

    Tokens to set a password that were mailed to the previous address become invalid. An address that an unconfirmed
    identity uses is claimed: until the coach uses a mailed token, there is no password. Raises Conflict if the address
    is already used to sign in.
    """
    current = await _find_by_subject(ctx, subject_id)
    holder = current or await claims.find_one(ctx, {"subjectId": subject_id})
    has_password = current is not None and current["passwordHash"] is not None
    if holder is None or holder["address"] in models.spellings_of(email):
        return EmailChange(changed=False, has_password=has_password)
    if current is not None and not await _can_be_claimed(ctx, email):
        await _require_other_spellings_free(ctx, subject_id, email)
        fields = {"address": models.normalize_email(email), "isConfirmed": False}
        with conflict_if_taken(_email_taken()):
            await identities.update(ctx, {"subjectId": subject_id}, {"$set": fields})
        await resets.delete_many(ctx, {"subjectId": subject_id})
        return EmailChange(changed=True, has_password=has_password)
    await remove(ctx, subject_id)
    await create(ctx, subject_id, holder["kind"], email, None)
    return EmailChange(changed=True, has_password=False)


async def set_password(ctx: Context, subject_id: ObjectId, password_hash: str) -> bool:
    """Set the password of a coach or client of the company, in the caller's transaction.

    Mailed tokens to set a password become invalid. Returns whether the coach or client can sign in at all.
    """
    await resets.delete_many(ctx, {"subjectId": subject_id})
    return await _set_password(ctx, subject_id, {"passwordHash": password_hash}) is not None


async def _set_password(ctx: Context, subject_id: ObjectId, fields: Document) -> models.StoredIdentity | None:
    changed = {"$set": {**fields, "passwordChangedAt": now()}}
    return await identities.update(ctx, {"subjectId": subject_id}, changed)


def _to_identity(stored: models.StoredIdentity | models.IdentityClaim | models.PasswordReset) -> Identity:
    return Identity(stored["subjectId"], stored["companyId"], stored["kind"])


# --- Verifying passwords ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifiedSignIn:
    """The identity whose password is right, and the counters to reset when it may sign in.

    `password_signature` is of this password.
    """

    identity: Identity
    attempt: Attempt
    password_signature: str


async def verify_sign_in(
    ctx: Context, email: str, password: str, device_tokens: Iterable[str] = (), *, session: ObjectId | None = None
) -> VerifiedSignIn:
    """Return the identity with this e-mail address and password.

    Failures are counted for the device if one of `device_tokens` is valid for the identity, or for a `session` of it;
    else for the account and for the network address. Raises SignInRejected, the same for an unknown address and a wrong
    password; TooManyRequests from the 6th failure of a device or account or the 30th of a network address within 15
    minutes; ClientDisconnected if the caller has closed the connection meanwhile; Unavailable if too many others wait.
    Each process verifies one password at a time and reads the failures before each, so that concurrent guesses are all
    counted.
    """
    async with ctx.services.sign_in_slot.holding(ctx.network_address):
        if ctx.is_disconnected():
            raise ClientDisconnected()
        stored = await _find_by_email(ctx.services, email)
        device = str(session) if session else models.find_device(ctx.services, stored, device_tokens)
        attempt = Attempt(models.account_key(email), ctx.network_address, device)
        await require_few(ctx, attempt)
        if await verify_password(password, stored["passwordHash"] if stored else None) and stored is not None:
            return _verified(ctx, stored, attempt)
        if stored is not None:
            is_coach = stored["kind"] == "coach"
            audit.record_failed_sign_in(ctx, stored["companyId"], stored["subjectId"], is_coach=is_coach)
        await count(ctx, attempt)
        reason = "unknown_address" if stored is None else "wrong_password"
        ctx.services.metrics.sign_in_failures.labels(reason).inc()
        raise sign_in_rejected()


async def resume_sign_in(
    ctx: Context, company_id: ObjectId, subject_id: ObjectId, password_signature: str | None, device: str | None
) -> VerifiedSignIn | None:
    """Return what `verify_sign_in` returned, with a count of wrong codes; None if the password is another one now.

    `password_signature` is None for a user who signs in without the password.
    """
    stored = await _find_of_company(ctx.services, company_id, subject_id)
    if stored is None:
        return None
    if password_signature is not None and not models.is_password_of(ctx.services, stored, password_signature):
        return None
    account = models.account_key(stored["address"])
    return _verified(ctx, stored, Attempt(account, ctx.network_address, device, subject_id))


async def find_verified(ctx: Context, subject_id: ObjectId) -> VerifiedSignIn | None:
    """Return what `verify_sign_in` would return for a user of the company who has proved otherwise who they are."""
    if (stored := await _find_by_subject(ctx, subject_id)) is None:
        return None
    return _verified(ctx, stored, Attempt(models.account_key(stored["address"]), ctx.network_address))


def _verified(ctx: Context, stored: models.StoredIdentity, attempt: Attempt) -> VerifiedSignIn:
    return VerifiedSignIn(_to_identity(stored), attempt, models.sign_password(ctx.services, stored))


async def check_password(ctx: Context, subject_id: ObjectId, password: str) -> bool:
    """Return whether `password` is the password of a coach or client of the company, who is signed in.

    A wrong one counts as a failed sign-in of the session. Raises TooManyRequests as verify_sign_in does.
    """
    stored = await _find_by_subject(ctx, subject_id)
    if stored is None:
        return False
    try:
        verified = await verify_sign_in(ctx, stored["address"], password, session=ctx.caller.credential_id)
    except SignInRejected:
        return False
    await clear(ctx, verified.attempt)
    return True


async def clear_failures(ctx: Context, email: str) -> None:
    """Reset the count of an account's failed sign-ins."""
    await clear(ctx, Attempt(models.account_key(email), ctx.network_address))


async def is_known_device(ctx: Context, email: str, device_tokens: Iterable[str]) -> bool:
    """Return whether one of `device_tokens` is the token of a device that signed in before by an e-mail address."""
    stored = await _find_by_email(ctx.services, email)
    return models.find_device(ctx.services, stored, device_tokens) is not None


async def sign_device(ctx: Context, subject_id: ObjectId) -> str:
    """Return a token for the device on which a coach or client of the company signs in; empty without an identity."""
    stored = await _find_by_subject(ctx, subject_id)
    return "" if stored is None else models.sign_device(ctx.services, stored)


async def find_password_change(ctx: Context, subject_id: ObjectId) -> datetime | None:
    """Return when the password of a coach or client was last set, or the identity created; None without an identity."""
    stored = await _find_by_subject(ctx, subject_id)
    return None if stored is None else stored.get("passwordChangedAt", stored["createdAt"])


def sign_in_rejected() -> SignInRejected:
    """Return the error for every rejected sign-in."""
    return SignInRejected("The e-mail address or the password is wrong")


# --- Tokens that are sent by mail ------------------------------------------------------------------------------------


async def create_reset_token(ctx: Context, subject_id: ObjectId, kind: models.SubjectKind) -> str:
    """Return a single-use token by which a coach or client of the company sets a password within an hour.

    It must only be sent to the e-mail address of the identity: using it confirms the address.
    """
    token = new_token()
    await resets.insert(ctx, {"subjectId": subject_id, "kind": kind, "tokenHash": token_hash(token)})
    return token


async def find_by_reset_token(services: Services, token: str) -> Identity | None:
    """Return the identity whose password this token sets; None if the token is unknown or has expired."""
    where = {"tokenHash": token_hash(token), "createdAt": {"$gt": now() - RESET_LIFETIME}}
    reset: Any = await resets.across_companies(services).find_one(where)
    return None if reset is None else _to_identity(reset)


async def reset_password(ctx: Context, subject_id: ObjectId, token: str, password_hash: str) -> str | None:
    """Set a password by a token and confirm the e-mail address, in the caller's transaction.

    A claimed address becomes the coach's, and the unconfirmed identity that used it is removed. Returns the e-mail
    address; None if the token is no longer valid. Raises Conflict if another user has confirmed a claimed address.
    """
    reset = await resets.delete(ctx, {"subjectId": subject_id, "tokenHash": token_hash(token)})
    await resets.delete_many(ctx, {"subjectId": subject_id})
    if reset is None:
        return None
    holder: models.StoredIdentity | models.IdentityClaim | None
    confirmed = {"passwordHash": password_hash, "isConfirmed": True}
    if (holder := await _set_password(ctx, subject_id, confirmed)) is None:
        if (holder := await claims.delete(ctx, {"subjectId": subject_id})) is None:
            return None
        await create(ctx, subject_id, holder["kind"], holder["address"], password_hash, is_confirmed=True)
    await ctx.publish(models.EmailConfirmed(subject_id))
    return holder["address"]


async def sign_confirmation(ctx: Context, subject_id: ObjectId) -> tuple[str, str] | None:
    """Return the e-mail address of a coach or client of the company, and the token that confirms it within a week.

    It must only be sent to this address. Returns None if the address is confirmed, or the user cannot sign in.
    """
    stored = await _find_by_subject(ctx, subject_id)
    if stored is None or stored.get("isConfirmed", True):
        return None
    until = int(time.time() + CONFIRMATION_LIFETIME.total_seconds())
    signature = ctx.services.vault.sign(_confirmation(subject_id, stored["address"], until))
    return stored["address"], f"{ctx.company_id}.{subject_id}.{until}.{signature}"


async def find_by_confirmation(services: Services, token: str) -> tuple[Identity, str] | None:
    """Return the identity and the e-mail address that a token confirms; None if it is unknown or has expired."""
    match = _CONFIRMATION.fullmatch(token)
    if match is None or int(match["until"]) < time.time():
        return None
    subject_id = ObjectId(match["subject"])
    stored = await _find_of_company(services, ObjectId(match["company"]), subject_id)
    if stored is None:
        return None
    signed = _confirmation(subject_id, stored["address"], int(match["until"]))
    if not services.vault.verify_signature(signed, match["signature"]):
        return None
    return _to_identity(stored), stored["address"]


async def confirm_email(ctx: Context, subject_id: ObjectId, address: str) -> bool:
    """Confirm the e-mail address of a coach or client of the company, in the caller's transaction.

    Returns False if the user no longer signs in by it.
    """
    where = {"subjectId": subject_id, "address": address}
    if await identities.update(ctx, where, {"$set": {"isConfirmed": True}}) is None:
        return False
    await ctx.publish(models.EmailConfirmed(subject_id))
    return True


def _confirmation(subject_id: ObjectId, address: str, until: int) -> str:
    return f"confirm e-mail:{subject_id}:{until}:{address}"


def sign_invitation(services: Services, token: str, email: str) -> str:
    """Return the token to mail for a first-access token: it proves that it was sent to `email`."""
    return f"{token}.{services.vault.sign(_invitation(token, email))}"


def confirms_email(services: Services, signature: str, token: str, email: str) -> bool:
    """Return whether the signature of a mailed first-access token proves that it was sent to `email`."""
    return services.vault.verify_signature(_invitation(token, email), signature)


def _invitation(token: str, email: str) -> str:
    return f"first access:{token}:{models.normalize_email(email)}"
