"""The second factor of coaches and clients: set up, asked for with a challenge, verified and removed."""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import orjson
import pyotp
from marshmallow import fields
from pyotp.utils import strings_equal
from webauthn import (
    base64url_to_bytes,
    generate_authentication_options,
    generate_registration_options,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import bytes_to_base64url, options_to_json_dict, parse_client_data_json, structs
from webauthn.helpers.exceptions import WebAuthnException
from yarl import URL

from coaching_service.core import audit, rate_limits
from coaching_service.core.auth import SecretUnreadable, token_hash
from coaching_service.core.database.across_companies import Sealed
from coaching_service.core.database.context import Context, Services, conflict_if_taken, gather_reads, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.errors import (
    Conflict,
    InvalidFields,
    NotFound,
    SecondFactorRequired,
    SignInRejected,
    invalid_field,
)
from coaching_service.core.fields import Description, input_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.outbound import is_address
from coaching_service.core.validation import Text
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.service import VerifiedSignIn

# --- Second factors as they are sent, stored and returned -------------------------------------------------------------


MAX_NAME = 100
Encoded = partial(Text, max_length=10_000)  # of a browser, in base64url
Method = Literal["totp", "recoveryCode", "passkey"]


class StoredFactor(Stored):
    """The authenticator application of a coach or client: one that is in use, and one that is being set up.

    `sealed` is its encrypted secret; `usedSteps` are the last steps of time (of 30 seconds) whose code was accepted;
    `recoveryCodes` are hashes of those that are not used.
    """

    subjectId: ObjectId
    isConfirmed: bool
    sealed: bytes
    usedSteps: list[int]
    recoveryCodes: list[str]


class AuthenticatorSecret(TypedDict):
    """What an authenticator application needs to compute codes; it is shown once."""

    secret: Annotated[str, Description("In base32, to type into an application.")]
    otpauthUrl: Annotated[str, Description("The same as an address, which applications read as a QR code.")]


class ConfirmedFactor(TypedDict):
    """Codes that each sign in once instead of a code of the application; they are shown once."""

    recoveryCodes: Annotated[list[str], Description("10 codes, which are shown once.")]


class SecondFactor(TypedDict):
    """Which second factors the caller has."""

    methods: Annotated[
        list[Method], Description("What a sign-in accepts in addition to the password; empty: nothing is asked.")
    ]
    recoveryCodesLeft: Annotated[int, Description("How many recovery codes are not used.")]


class CodeToConfirm(TypedDict):
    """A code of the application that is being set up."""

    code: Annotated[str, Text(max_length=20), Description("6 digits that the application shows now.")]


class FactorAnswer(TypedDict):
    """What a user answers to a challenge: one of these."""

    code: NotRequired[Annotated[str | None, Text(max_length=20), Description("A code of the application.")]]
    recoveryCode: NotRequired[Annotated[str | None, Text(max_length=50), Description("A recovery code.")]]


class _AssertionResponse(TypedDict):
    """The answer of a passkey to a challenge."""

    clientDataJSON: Annotated[str, Encoded(), Description("What the browser has signed for, in base64url.")]
    authenticatorData: Annotated[str, Encoded(), Description("What the authenticator says, in base64url.")]
    signature: Annotated[str, Encoded(), Description("Its signature, in base64url.")]


class _CreationResponse(TypedDict):
    """A new passkey."""

    clientDataJSON: Annotated[str, Encoded(), Description("What the browser has asked for, in base64url.")]
    attestationObject: Annotated[str, Encoded(), Description("The public key and its origin, in base64url.")]


class _Credential(TypedDict):
    """A passkey."""

    id: Annotated[str, Encoded(), Description("The identifier of the passkey, in base64url.")]
    rawId: Annotated[str, Encoded(), Description("The same as `id`.")]


class Assertion(_Credential):
    """What `navigator.credentials.get` returns, as `toJSON()` of a browser has it."""

    response: Annotated[
        _AssertionResponse,
        fields.Nested(input_of(_AssertionResponse, name="AssertionResponseInput"), required=True),
        Description("The answer of the authenticator."),
    ]


class NewCredential(_Credential):
    """What `navigator.credentials.create` returns, as `toJSON()` of a browser has it."""

    response: Annotated[
        _CreationResponse,
        fields.Nested(input_of(_CreationResponse, name="CreationResponseInput"), required=True),
        Description("The answer of the authenticator."),
    ]


class ChallengeAnswer(FactorAnswer):
    """A challenge of POST /auth/login or POST /auth/second-factor/options, and the answer to it."""

    challenge: Annotated[
        str, Text(max_length=1000), Description("From POST /auth/login or POST /auth/second-factor/options.")
    ]
    assertion: NotRequired[
        Annotated[
            Assertion | None,
            fields.Nested(input_of(Assertion, name="AssertionInput"), allow_none=True),
            Description("The answer of a passkey to `publicKey`."),
        ]
    ]


class NewPasskey(TypedDict):
    """A passkey to register."""

    name: Annotated[
        str, Text(max_length=MAX_NAME), Description("How the user calls it, such as the name of the device.")
    ]
    credential: Annotated[
        NewCredential,
        fields.Nested(input_of(NewCredential, name="NewCredentialInput"), required=True),
        Description("The answer of the browser to `publicKey`."),
    ]


class Passkey(TypedDict):
    """A passkey of the caller."""

    _id: ObjectId
    name: str
    createdAt: datetime
    lastUsedAt: datetime | None


class NewPublicKey(TypedDict):
    """What identifies a passkey: its identifier in base64url, its public key, and its counter of uses."""

    credentialId: str
    publicKey: bytes
    signCount: int


class StoredPasskey(NewPublicKey, Stored):
    """A passkey of a coach or client."""

    subjectId: ObjectId
    name: str
    lastUsedAt: datetime | None


class PasskeyOptions(TypedDict):
    """What a browser needs to create a passkey."""

    publicKey: Annotated[
        dict[str, object],
        fields.Dict(),
        Description("For `PublicKeyCredential.parseCreationOptionsFromJSON`."),
    ]


class PasskeyChallenge(TypedDict):
    """What a browser needs to sign in with a passkey."""

    challenge: Annotated[str, Description("To send back with the answer, within 5 minutes.")]
    publicKey: Annotated[
        dict[str, object],
        fields.Dict(),
        Description("For `PublicKeyCredential.parseRequestOptionsFromJSON`."),
    ]


# --- Authenticator applications and passkeys in the database ----------------------------------------------------------


passkeys = Documents[StoredPasskey](
    "passkeys",
    (Index(("subjectId", "createdAt")),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("credentialId",), unique=True),),
    cross_company_reason="a passkey signs in before its company is known",
    placement=Unsharded("a passkey is unique among all companies, and found before its company is known"),
    transfer=NotExported("credentials"),
)
factors = Documents[StoredFactor](
    "secondFactors",
    (Index(("subjectId", "isConfirmed"), unique=True),),
    client_field="subjectId",
    secret=True,
    cross_company_reason="the secrets of all companies are encrypted with another master key",
    transfer=NotExported("secrets"),
)


async def list_passkeys(ctx: Context, subject_id: ObjectId) -> list[StoredPasskey]:
    """Return the passkeys of a coach or client of the company, the oldest first."""
    return await passkeys.find(ctx, {"subjectId": subject_id}, sort=("createdAt",))


# --- Challenges: encrypted texts, which are stored nowhere, to be answered once within 5 minutes ----------------------


CHALLENGE_LIFETIME = timedelta(minutes=5)
_KIND = "challenge"


class Challenge(TypedDict):
    """Whom a challenge asks: `password` is a signature of the password that was right, `device` as in Attempt.

    `company` and `subject` are empty if anyone may answer. `nonce` is the number of the challenge, `detail` what else
    its purpose needs.
    """

    company: str
    subject: str
    password: str
    device: str | None
    detail: str
    until: float
    nonce: str


def create_challenge(
    services: Services,
    purpose: str,
    company: object = "",
    subject: object = "",
    *,
    password: str = "",
    device: str | None = None,
    detail: str = "",
    nonce: str = "",
) -> str:
    """Return a new challenge for a purpose, in base64url; `nonce`: its number, if the caller needs to know it."""
    content: Challenge = {
        "company": str(company),
        "subject": str(subject),
        "password": password,
        "device": device,
        "detail": detail,
        "until": time.time() + CHALLENGE_LIFETIME.total_seconds(),
        "nonce": nonce or secrets.token_urlsafe(12),
    }
    sealed = services.vault.seal(orjson.dumps(content), f"challenge: {purpose}")
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


async def find_challenge(services: Services, purpose: str, text: str) -> Challenge | None:
    """Return the challenge of a text; None if it is unknown, older than 5 minutes or used."""
    try:
        sealed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        content: Challenge = orjson.loads(services.vault.open(sealed, f"challenge: {purpose}"))
    except (SecretUnreadable, ValueError):
        return None
    if content["until"] <= time.time() or (await rate_limits.get_count(services, _KIND, content["nonce"]))[0]:
        return None
    return content


async def use_challenge(ctx: Context, challenge: Challenge) -> bool:
    """Use a challenge that was answered rightly; returns False if it was used before."""
    number, _ = await rate_limits.count(ctx.services, _KIND, challenge["nonce"], window=CHALLENGE_LIFETIME)
    return number == 1


# --- Passkeys (WebAuthn): registered by a signed-in user, and used instead of a code, or of password and code ---------
# The challenge of a browser is an encrypted text, as for a sign-in, so nothing is stored before it is answered.


MAX_PASSKEYS = 20
_REGISTRATION = "passkey registration"
_VERIFIED = structs.UserVerificationRequirement.REQUIRED
# What the library raises for what a browser would not send; the last ones for values of another type in the data.
_INVALID = (WebAuthnException, ValueError, LookupError, TypeError, AttributeError)


def relying_party(services: Services) -> str | None:
    """Return the host of the base address, for which passkeys are; None for an IP address, which browsers refuse."""
    host = URL(services.base_url).raw_host or ""
    return None if is_address(host) else host


def _require_relying_party(services: Services) -> str:
    if (host := relying_party(services)) is None:
        raise Conflict("Passkeys need a base address with a host name", code="PASSKEYS_UNAVAILABLE")
    return host


def _origin(services: Services) -> str:
    return str(URL(services.base_url).origin())


# --- the passkeys of the caller --------------------------------------------------------------------------------------


async def begin_passkey(ctx: Context) -> PasskeyOptions:
    """Return what a browser needs to create a passkey of the caller.

    Raises Conflict without a host name, or if the caller has too many.
    """
    host, existing = _require_relying_party(ctx.services), await list_passkeys(ctx, ctx.caller.id)
    _require_few(existing)
    challenge = create_challenge(ctx.services, _REGISTRATION, ctx.company_id, ctx.caller.id)
    options = generate_registration_options(
        rp_id=host,
        rp_name=ctx.caller.company.name,
        user_name=await identities.get_email(ctx, ctx.caller.id) or ctx.caller.name,
        user_display_name=ctx.caller.name,
        user_id=ctx.caller.id.binary,
        challenge=base64url_to_bytes(challenge),
        authenticator_selection=structs.AuthenticatorSelectionCriteria(
            resident_key=structs.ResidentKeyRequirement.REQUIRED, require_resident_key=True, user_verification=_VERIFIED
        ),
        exclude_credentials=[_descriptor(each) for each in existing],
    )
    return {"publicKey": options_to_json_dict(options)}


def _require_few(existing: list[StoredPasskey]) -> None:
    if len(existing) >= MAX_PASSKEYS:
        raise Conflict(f"There are {MAX_PASSKEYS} passkeys; remove one first", code="TOO_MANY_PASSKEYS")


async def verify_new_passkey(ctx: Context, credential: NewCredential) -> NewPublicKey:
    """Return the public key of a passkey that a browser has created for the caller, whose challenge is used then.

    Raises InvalidFields if it is not valid for this service, Conflict without a host name.
    """
    host = _require_relying_party(ctx.services)
    try:
        client_data = parse_client_data_json(base64url_to_bytes(credential["response"]["clientDataJSON"]))
        verified = verify_registration_response(
            credential=_as_json(credential),
            expected_challenge=client_data.challenge,
            expected_rp_id=host,
            expected_origin=_origin(ctx.services),
            require_user_verification=True,
        )
    except _INVALID:
        raise _invalid() from None
    challenge = await find_challenge(ctx.services, _REGISTRATION, bytes_to_base64url(client_data.challenge))
    if challenge is None or challenge["subject"] != str(ctx.caller.id) or not await use_challenge(ctx, challenge):
        raise _invalid()
    return {
        "credentialId": bytes_to_base64url(verified.credential_id),
        "publicKey": verified.credential_public_key,
        "signCount": verified.sign_count,
    }


def _invalid() -> InvalidFields:
    return invalid_field("credential", "is not a valid passkey for this address", code="PASSKEY_INVALID")


@transactional
async def add_passkey(ctx: Context, name: str, key: NewPublicKey) -> Passkey:
    """Store a verified passkey of the caller. Raises Conflict if it exists already, or if there are too many."""
    _require_few(await list_passkeys(ctx, ctx.caller.id))
    with conflict_if_taken(Conflict("This passkey is registered already", code="PASSKEY_EXISTS")):
        stored = await passkeys.insert(ctx, {"subjectId": ctx.caller.id, "name": name, **key, "lastUsedAt": None})
    await audit.record(ctx, "passkey.added", stored["_id"], name, customer_id=audit.own_client(ctx.caller))
    return to_passkey(stored)


@transactional
async def remove_passkey(ctx: Context, passkey_id: ObjectId) -> None:
    """Remove a passkey of the caller. Raises NotFound."""
    if not await passkeys.delete_many(ctx, {"_id": passkey_id, "subjectId": ctx.caller.id}):
        raise NotFound("passkey")
    await audit.record(ctx, "passkey.removed", passkey_id, customer_id=audit.own_client(ctx.caller))


def to_passkey(stored: StoredPasskey) -> Passkey:
    """Return a passkey as its user sees it."""
    return take(Passkey, stored)


# --- signing in ------------------------------------------------------------------------------------------------------


def request_options(services: Services, challenge: str, existing: list[StoredPasskey]) -> dict[str, object]:
    """Return what a browser needs to answer with one of these passkeys, or any. Raises Conflict without a host name."""
    options = generate_authentication_options(
        rp_id=_require_relying_party(services),
        challenge=base64url_to_bytes(challenge),
        allow_credentials=[_descriptor(each) for each in existing],
        user_verification=_VERIFIED,
    )
    return options_to_json_dict(options)


async def verify_passkey(services: Services, passkey: StoredPasskey, challenge: str, assertion: Assertion) -> bool:
    """Return whether an assertion by a passkey answers a challenge; the use is stored then.

    False also if the passkey was used or removed since it was read.
    """
    if (host := relying_party(services)) is None:
        return False
    try:
        verified = verify_authentication_response(
            credential=_as_json(assertion),
            expected_challenge=base64url_to_bytes(challenge),
            expected_rp_id=host,
            expected_origin=_origin(services),
            credential_public_key=passkey["publicKey"],
            credential_current_sign_count=passkey["signCount"],
            require_user_verification=True,
        )
    except _INVALID:
        return False
    unchanged = {"_id": passkey["_id"], "companyId": passkey["companyId"], "signCount": passkey["signCount"]}
    used = {"$set": {"signCount": verified.new_sign_count, "lastUsedAt": now()}}
    return (await passkeys.across_companies(services).update_one(unchanged, used)).matched_count == 1


def _descriptor(passkey: StoredPasskey) -> structs.PublicKeyCredentialDescriptor:
    return structs.PublicKeyCredentialDescriptor(id=base64url_to_bytes(passkey["credentialId"]))


def _as_json(credential: Mapping[str, Any]) -> dict[str, Any]:
    return {**credential, "type": "public-key", "clientExtensionResults": {}}


# --- Which second factors a user has ----------------------------------------------------------------------------------


RECOVERY_CODES = 10
_RECOVERY_ALPHABET, _RECOVERY_LENGTH, _RECOVERY_GROUP = "abcdefghijkmnpqrstuvwxyz23456789", 16, 4
_STEP_SECONDS = 30
_USED_STEPS = 5  # more than are within the reach of one code
_SEALED = Sealed(factors, "second factor")

iterate_unreadable, rotate_master_key = _SEALED.iterate_unreadable, _SEALED.rotate_master_key


# --- what a user has -------------------------------------------------------------------------------------------------


async def get(ctx: Context, subject_id: ObjectId) -> SecondFactor:
    """Return which second factors a coach or client of the company has."""
    factor, own_passkeys = await _load(ctx, subject_id)
    left = len(factor["recoveryCodes"]) if factor else 0
    offered: tuple[tuple[Method, bool], ...] = (
        ("totp", factor is not None),
        ("recoveryCode", left > 0),
        ("passkey", bool(own_passkeys) and relying_party(ctx.services) is not None),
    )
    return {"methods": [method for method, is_offered in offered if is_offered], "recoveryCodesLeft": left}


async def has_any(ctx: Context, subject_id: ObjectId) -> bool:
    """Return whether a coach or client of the company has a second factor, also one that is not offered now."""
    return any(await _load(ctx, subject_id))


async def _load(ctx: Context, subject_id: ObjectId) -> tuple[StoredFactor | None, list[StoredPasskey]]:
    factor, own_passkeys = await gather_reads(
        ctx,
        factors.find_one(ctx, _confirmed(subject_id), ("recoveryCodes",)),
        list_passkeys(ctx, subject_id),
    )
    return factor, own_passkeys


async def list_holders(ctx: Context) -> set[ObjectId]:
    """Return the coaches and clients of the company who have a second factor."""
    confirmed = await factors.find(ctx, {"isConfirmed": True}, fields=("subjectId",))
    registered = await passkeys.find(ctx, {}, fields=("subjectId",))
    return {each["subjectId"] for each in (*confirmed, *registered)}


def _confirmed(subject_id: ObjectId) -> dict[str, object]:
    return {"subjectId": subject_id, "isConfirmed": True}


# --- setting up and removing -----------------------------------------------------------------------------------------


@transactional
async def begin(ctx: Context) -> AuthenticatorSecret:
    """Return a new secret of the caller for an authenticator application: in use once a code of it is confirmed."""
    await factors.delete_many(ctx, {"subjectId": ctx.caller.id, "isConfirmed": False})
    secret, factor_id = pyotp.random_base32(), ObjectId()
    factor = {
        "_id": factor_id,
        "subjectId": ctx.caller.id,
        "isConfirmed": False,
        "sealed": _SEALED.seal(ctx.services.vault, factor_id, secret.encode()),
        "usedSteps": [],
        "recoveryCodes": [],
    }
    await factors.insert(ctx, factor)
    return await describe_secret(ctx, secret)


async def describe_secret(ctx: Context, secret: str) -> AuthenticatorSecret:
    """Return a secret of the caller as applications take it."""
    name = await identities.get_email(ctx, ctx.caller.id) or ctx.caller.name
    url = pyotp.TOTP(secret).provisioning_uri(name=name, issuer_name=ctx.caller.company.name.replace(":", " "))
    return {"secret": secret, "otpauthUrl": url}


async def find_pending(ctx: Context) -> AuthenticatorSecret | None:
    """Return the secret that the caller is setting up, or None."""
    pending = await factors.find_one(ctx, {"subjectId": ctx.caller.id, "isConfirmed": False}, ("sealed",))
    return None if pending is None else await describe_secret(ctx, _SEALED.open(ctx.services.vault, pending).decode())


@transactional
async def confirm(ctx: Context, code: str) -> ConfirmedFactor | None:
    """Put the secret of the caller into use that was begun, instead of an earlier one; None if the code is wrong.

    Raises Conflict if none was begun.
    """
    pending = await factors.find_one(ctx, {"subjectId": ctx.caller.id, "isConfirmed": False}, ("sealed",))
    if pending is None:
        raise Conflict("Begin with POST /auth/second-factor/totp", code="SECOND_FACTOR_NOT_BEGUN")
    steps = _matching_steps(_SEALED.open(ctx.services.vault, pending).decode(), code)
    if not steps:
        return None
    groups = range(_RECOVERY_LENGTH // _RECOVERY_GROUP)
    codes = [
        "-".join("".join(secrets.choice(_RECOVERY_ALPHABET) for _ in range(_RECOVERY_GROUP)) for _ in groups)
        for _ in range(RECOVERY_CODES)
    ]
    await factors.delete_many(ctx, _confirmed(ctx.caller.id))
    hashes = [token_hash(_without_separators(each)) for each in codes]
    in_use = {"isConfirmed": True, "usedSteps": steps, "recoveryCodes": hashes}
    await factors.update(ctx, {"_id": pending["_id"]}, {"$set": in_use})
    await audit.record(ctx, "second_factor.enabled", ctx.caller.id, customer_id=audit.own_client(ctx.caller))
    return {"recoveryCodes": codes}


async def remove(ctx: Context, subject_id: ObjectId) -> bool:
    """Remove every second factor of a coach or client of the company, in the caller's transaction.

    Returns whether there was one.
    """
    had_any = await has_any(ctx, subject_id)
    await factors.delete_many(ctx, {"subjectId": subject_id})
    await passkeys.delete_many(ctx, {"subjectId": subject_id})
    return had_any


# --- verifying -------------------------------------------------------------------------------------------------------


@transactional
async def _spend_code(ctx: Context, code: str) -> bool:
    factor = await factors.find_one(ctx, _confirmed(ctx.caller.id), ("sealed", "usedSteps"))
    if factor is None:
        return False
    for step in _matching_steps(_SEALED.open(ctx.services.vault, factor).decode(), code):
        unused = {"_id": factor["_id"], "usedSteps": {"$ne": step}}
        spent = {"$push": {"usedSteps": {"$each": [step], "$slice": -_USED_STEPS}}}
        if await factors.update(ctx, unused, spent) is not None:
            return True
    return False


@transactional
async def _spend_recovery_code(ctx: Context, code: str) -> bool:
    code_hash = token_hash(_without_separators(code))
    where = {**_confirmed(ctx.caller.id), "recoveryCodes": code_hash}
    return await factors.update(ctx, where, {"$pull": {"recoveryCodes": code_hash}}) is not None


async def verify(ctx: Context, answer: ChallengeAnswer, challenged: Challenged) -> bool:
    """Return whether the caller, who signs in, has answered rightly; the code is spent then."""
    if assertion := answer.get("assertion"):
        passkey = challenged.passkey
        is_own = passkey is not None and (passkey["companyId"], passkey["subjectId"]) == (ctx.company_id, ctx.caller.id)
        if passkey is None or not is_own:
            return False
        return await verify_passkey(ctx.services, passkey, answer["challenge"], assertion)
    if code := answer.get("code"):
        return await _spend_code(ctx, code)
    return await _spend_recovery_code(ctx, answer.get("recoveryCode") or "")


def _matching_steps(secret: str, code: str) -> list[int]:
    """Return the steps of time, of now, the one before and the one after, that a code is of."""
    code = _without_separators(code)
    now, generator = int(time.time()) // _STEP_SECONDS, pyotp.TOTP(secret)
    return [step for step in (now, now - 1, now + 1) if strings_equal(generator.generate_otp(step), code)]


def _without_separators(code: str) -> str:
    return re.sub(r"[\s-]", "", code).lower()


# --- challenges of a sign-in ------------------------------------------------------------------------------------------


_SIGN_IN = "sign-in"


@dataclass(frozen=True, slots=True)
class Challenged:
    """Who signs in, the challenge that this user answers, and the passkey that is used."""

    verified: VerifiedSignIn
    challenge: Challenge
    passkey: StoredPasskey | None = None


async def require_none(ctx: Context, verified: VerifiedSignIn) -> None:
    """Raise SecondFactorRequired, with a challenge, if the caller, whose password is right, has a second factor."""
    if not await has_any(ctx, ctx.caller.id):
        return
    identity, methods = verified.identity, (await get(ctx, ctx.caller.id))["methods"]
    text = create_challenge(
        ctx.services,
        _SIGN_IN,
        identity.company_id,
        identity.subject_id,
        password=verified.password_signature,
        device=verified.attempt.device,
    )
    options = None
    if "passkey" in methods:
        options = request_options(ctx.services, text, await list_passkeys(ctx, ctx.caller.id))
    raise SecondFactorRequired(text, list(methods), options)


def challenge_anyone(services: Services) -> PasskeyChallenge:
    """Return what a browser needs to sign in with a passkey alone. Raises Conflict without a host name."""
    text = create_challenge(services, _SIGN_IN)
    return {"challenge": text, "publicKey": request_options(services, text, [])}


async def find_challenged(ctx: Context, answer: ChallengeAnswer) -> Challenged:
    """Return who answers a challenge.

    Raises SignInRejected if the challenge is not valid: unknown, too old or used, or of an earlier password; or if it
    names no user and the passkey is not known.
    """
    if (found := await find_challenge(ctx.services, _SIGN_IN, answer["challenge"])) is None:
        raise challenge_rejected()
    assertion = answer.get("assertion")
    passkey: Any = None  # the driver's documents are untyped
    if assertion:
        passkey = await passkeys.across_companies(ctx.services).find_one({"credentialId": assertion["id"]})
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
