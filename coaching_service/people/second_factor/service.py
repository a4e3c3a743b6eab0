"""The second factor of coaches and clients: set up, asked for with a challenge, verified and removed."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass

import pyotp
from pyotp.utils import strings_equal

from coaching_service.core import audit
from coaching_service.core.auth import token_hash
from coaching_service.core.database.across_companies import Sealed
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.errors import Conflict, SecondFactorRequired, SignInRejected
from coaching_service.core.ids import ObjectId
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.service import VerifiedSignIn
from coaching_service.people.second_factor import challenges, models, passkeys, store
from coaching_service.people.second_factor.challenges import Challenge

RECOVERY_CODES = 10
_RECOVERY_ALPHABET, _RECOVERY_LENGTH, _RECOVERY_GROUP = "abcdefghijkmnpqrstuvwxyz23456789", 16, 4
_STEP_SECONDS = 30
_USED_STEPS = 5  # more than are within the reach of one code
_SEALED = Sealed(store.factors, "second factor")

iterate_unreadable, rotate_master_key = _SEALED.iterate_unreadable, _SEALED.rotate_master_key


# --- what a user has -------------------------------------------------------------------------------------------------


async def get(ctx: Context, subject_id: ObjectId) -> models.SecondFactor:
    """Return which second factors a coach or client of the company has."""
    factor, own_passkeys = await _load(ctx, subject_id)
    left = len(factor["recoveryCodes"]) if factor else 0
    offered: tuple[tuple[models.Method, bool], ...] = (
        ("totp", factor is not None),
        ("recoveryCode", left > 0),
        ("passkey", bool(own_passkeys) and passkeys.relying_party(ctx.services) is not None),
    )
    return {"methods": [method for method, is_offered in offered if is_offered], "recoveryCodesLeft": left}


async def has_any(ctx: Context, subject_id: ObjectId) -> bool:
    """Return whether a coach or client of the company has a second factor, also one that is not offered now."""
    return any(await _load(ctx, subject_id))


async def _load(ctx: Context, subject_id: ObjectId) -> tuple[models.StoredFactor | None, list[models.StoredPasskey]]:
    factor, own_passkeys = await gather_reads(
        ctx,
        store.factors.find_one(ctx, _confirmed(subject_id), ("recoveryCodes",)),
        passkeys.list_of(ctx, subject_id),
    )
    return factor, own_passkeys


async def list_holders(ctx: Context) -> set[ObjectId]:
    """Return the coaches and clients of the company who have a second factor."""
    confirmed = await store.factors.find(ctx, {"isConfirmed": True}, fields=("subjectId",))
    registered = await store.passkeys.find(ctx, {}, fields=("subjectId",))
    return {each["subjectId"] for each in (*confirmed, *registered)}


def _confirmed(subject_id: ObjectId) -> dict[str, object]:
    return {"subjectId": subject_id, "isConfirmed": True}


# --- setting up and removing -----------------------------------------------------------------------------------------


@transactional
async def begin(ctx: Context) -> models.AuthenticatorSecret:
    """Return a new secret of the caller for an authenticator application: in use once a code of it is confirmed."""
    await store.factors.delete_many(ctx, {"subjectId": ctx.caller.id, "isConfirmed": False})
    secret, factor_id = pyotp.random_base32(), ObjectId()
    factor = {
        "_id": factor_id,
        "subjectId": ctx.caller.id,
        "isConfirmed": False,
        "sealed": _SEALED.seal(ctx.services.vault, factor_id, secret.encode()),
        "usedSteps": [],
        "recoveryCodes": [],
    }
    await store.factors.insert(ctx, factor)
    return await describe_secret(ctx, secret)


async def describe_secret(ctx: Context, secret: str) -> models.AuthenticatorSecret:
    """Return a secret of the caller as applications take it."""
    name = await identities.get_email(ctx, ctx.caller.id) or ctx.caller.name
    url = pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name=ctx.caller.company.name.replace(":", " "))
    return {"secret": secret, "otpauthUrl": url}


async def find_pending(ctx: Context) -> models.AuthenticatorSecret | None:
    """Return the secret that the caller is setting up, or None."""
    pending = await store.factors.find_one(ctx, {"subjectId": ctx.caller.id, "isConfirmed": False}, ("sealed",))
    return None if pending is None else await describe_secret(ctx, _SEALED.open(ctx.services.vault, pending).decode())


@transactional
async def confirm(ctx: Context, code: str) -> models.ConfirmedFactor | None:
    """Put the secret of the caller into use that was begun, instead of an earlier one; None if the code is wrong.

    Raises Conflict if none was begun.
    """
    pending = await store.factors.find_one(ctx, {"subjectId": ctx.caller.id, "isConfirmed": False}, ("sealed",))
    if pending is None:
        raise Conflict("Begin with POST /auth/second-factor/totp", code="SECOND_FACTOR_NOT_BEGUN")
    steps = _matching_steps(_SEALED.open(ctx.services.vault, pending).decode(), code)
    if not steps:
        return None
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    await store.factors.delete_many(ctx, _confirmed(ctx.caller.id))
    in_use = {
        "isConfirmed": True,
        "usedSteps": steps,
        "recoveryCodes": [token_hash(_without_separators(each)) for each in codes],
    }
    await store.factors.update(ctx, {"_id": pending["_id"]}, {"$set": in_use})
    await audit.record(ctx, "second_factor.enabled", ctx.caller.id, customer_id=audit.own_client(ctx.caller))
    return {"recoveryCodes": codes}


async def remove(ctx: Context, subject_id: ObjectId) -> bool:
    """Remove every second factor of a coach or client of the company, in the caller's transaction.

    Returns whether there was one.
    """
    had_any = await has_any(ctx, subject_id)
    await store.factors.delete_many(ctx, {"subjectId": subject_id})
    await store.passkeys.delete_many(ctx, {"subjectId": subject_id})
    return had_any


# --- verifying -------------------------------------------------------------------------------------------------------


async def verify(ctx: Context, answer: models.ChallengeAnswer, challenged: Challenged) -> bool:
    """Return whether the caller, who signs in, has answered rightly; the code is spent then."""
    if assertion := answer.get("assertion"):
        passkey = challenged.passkey
        is_own = passkey is not None and (passkey["companyId"], passkey["subjectId"]) == (ctx.company_id, ctx.caller.id)
        if passkey is None or not is_own:
            return False
        return await passkeys.verify(ctx.services, passkey, answer["challenge"], assertion)
    if code := answer.get("code"):
        return await _spend_code(ctx, code)
    return await _spend_recovery_code(ctx, answer.get("recoveryCode") or "")


@transactional
async def _spend_code(ctx: Context, code: str) -> bool:
    factor = await store.factors.find_one(ctx, _confirmed(ctx.caller.id), ("sealed", "usedSteps"))
    if factor is None:
        return False
    for step in _matching_steps(_SEALED.open(ctx.services.vault, factor).decode(), code):
        unused = {"_id": factor["_id"], "usedSteps": {"$ne": step}}
        spent = {"$push": {"usedSteps": {"$each": [step], "$slice": -_USED_STEPS}}}
        if await store.factors.update(ctx, unused, spent) is not None:
            return True
    return False


@transactional
async def _spend_recovery_code(ctx: Context, code: str) -> bool:
    code_hash = token_hash(_without_separators(code))
    where = {**_confirmed(ctx.caller.id), "recoveryCodes": code_hash}
    return await store.factors.update(ctx, where, {"$pull": {"recoveryCodes": code_hash}}) is not None


def _matching_steps(secret: str, code: str) -> list[int]:
    """Return the steps of time, of now, the one before and the one after, that a code is of."""
    code = _without_separators(code)
    now, generator = int(time.time()) // _STEP_SECONDS, pyotp.TOTP(secret)
    return [step for step in (now, now - 1, now + 1) if strings_equal(generator.generate_otp(step), code)]


def _new_recovery_code() -> str:
    letters = "".join(secrets.choice(_RECOVERY_ALPHABET) for _ in range(_RECOVERY_LENGTH))
    return "-".join(letters[i : i + _RECOVERY_GROUP] for i in range(0, _RECOVERY_LENGTH, _RECOVERY_GROUP))


def _without_separators(code: str) -> str:
    return re.sub(r"[\s-]", "", code).lower()


# --- challenges of a sign-in ------------------------------------------------------------------------------------------


_SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Challenged:
    """Who signs in, the challenge that this user answers, and the passkey that is used."""

    verified: VerifiedSignIn
    challenge: Challenge
    passkey: models.StoredPasskey | None = None


async def require_none(ctx: Context, verified: VerifiedSignIn) -> None:
    """Raise SecondFactorRequired, with a challenge, if the caller, whose password is right, has a second factor."""
    if not await has_any(ctx, ctx.caller.id):
        return
    identity, methods = verified.identity, (await get(ctx, ctx.caller.id))["methods"]
    text = challenges.create(
        ctx.services,
        _SIGN_IN,
        identity.company_id,
        identity.subject_id,
        password=verified.password_signature,
        device=verified.attempt.device,
    )
    options = None
    if "passkey" in methods:
        options = passkeys.request_options(ctx.services, text, await passkeys.list_of(ctx, ctx.caller.id))
    raise SecondFactorRequired(text, list(methods), options)


def challenge_anyone(services: Services) -> models.PasskeyChallenge:
    """Return what a browser needs to sign in with a passkey alone. Raises Conflict without a host name."""
    text = challenges.create(services, _SIGN_IN)
    return {"challenge": text, "publicKey": passkeys.request_options(services, text, [])}


async def find_challenged(ctx: Context, answer: models.ChallengeAnswer) -> Challenged:
    """Return who answers a challenge.

    Raises SignInRejected if the challenge is not valid: unknown, too old or used, or of an earlier password; or if it
    names no user and the passkey is not known.
    """
    if (found := await challenges.find(ctx.services, _SIGN_IN, answer["challenge"])) is None:
        raise challenge_rejected()
    assertion = answer.get("assertion")
    passkey = await store.find_passkey(ctx.services, assertion["id"]) if assertion else None
    if found["subject"]:
        company_id, subject_id, password = ObjectId(found["company"]), ObjectId(found["subject"]), found["password"]
        verified = await identities.resume_sign_in(ctx, company_id, subject_id, password, found["device"])
    elif passkey is None:
        raise passkey_rejected()
    else:  # failures are counted for the passkey: who guesses passwords does not lock it
        device = f"passkey {passkey['_id']}"
        verified = await identities.resume_sign_in(ctx, passkey["companyId"], passkey["subjectId"], None, device)
    if verified is None:
        raise challenge_rejected()
    return Challenged(verified, found, passkey)


def challenge_rejected() -> SignInRejected:
    """Return the error for a challenge that is not valid."""
    return SignInRejected(
        "The challenge is unknown, used or older than 5 minutes; sign in again", code="CHALLENGE_REJECTED"
    )


def passkey_rejected() -> SignInRejected:
    """Return the error for every assertion that is not accepted."""
    return SignInRejected("The passkey is unknown here, or its answer is not valid", code="PASSKEY_REJECTED")
