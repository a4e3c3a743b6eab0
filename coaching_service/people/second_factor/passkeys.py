"""Passkeys (WebAuthn): registered by a signed-in user, and used instead of a code, or of password and code.

The challenge of a browser is an encrypted text, as for a sign-in, so nothing is stored before it is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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

from coaching_service.core import audit
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.errors import Conflict, InvalidFields, NotFound, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.outbound import is_address
from coaching_service.people.identities import service as identities
from coaching_service.people.second_factor import challenges, models, store

MAX_PASSKEYS = 20
_REGISTRATION = "passkey registration"
_VERIFIED = structs.UserVerificationRequirement.REQUIRED
# What the library raises for what a browser would not send; the last ones for values of another type in the data.
_INVALID = (WebAuthnException, ValueError, LookupError, TypeError, AttributeError)

list_of = store.list_passkeys


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


async def begin(ctx: Context) -> models.PasskeyOptions:
    """Return what a browser needs to create a passkey of the caller.

    Raises Conflict without a host name, or if the caller has too many.
    """
    host, existing = _require_relying_party(ctx.services), await list_of(ctx, ctx.caller.id)
    _require_few(existing)
    challenge = challenges.create(ctx.services, _REGISTRATION, ctx.company_id, ctx.caller.id)
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


def _require_few(existing: list[models.StoredPasskey]) -> None:
    if len(existing) >= MAX_PASSKEYS:
        raise Conflict(f"There are {MAX_PASSKEYS} passkeys; remove one first", code="TOO_MANY_PASSKEYS")


async def verify_new(ctx: Context, credential: models.NewCredential) -> models.NewPublicKey:
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
    challenge = await challenges.find(ctx.services, _REGISTRATION, bytes_to_base64url(client_data.challenge))
    if challenge is None or challenge["subject"] != str(ctx.caller.id) or not await challenges.use(ctx, challenge):
        raise _invalid()
    return {
        "credentialId": bytes_to_base64url(verified.credential_id),
        "publicKey": verified.credential_public_key,
        "signCount": verified.sign_count,
    }


def _invalid() -> InvalidFields:
    return invalid_field("credential", "is not a valid passkey for this address", code="PASSKEY_INVALID")


@transactional
async def add(ctx: Context, name: str, key: models.NewPublicKey) -> models.Passkey:
    """Store a verified passkey of the caller. Raises Conflict if it exists already, or if there are too many."""
    _require_few(await list_of(ctx, ctx.caller.id))
    stored = await store.insert_passkey(ctx, {"subjectId": ctx.caller.id, "name": name, **key, "lastUsedAt": None})
    await audit.record(ctx, "passkey.added", stored["_id"], name, customer_id=audit.own_client(ctx.caller))
    return to_passkey(stored)


@transactional
async def remove(ctx: Context, passkey_id: ObjectId) -> None:
    """Remove a passkey of the caller. Raises NotFound."""
    if not await store.passkeys.delete_many(ctx, {"_id": passkey_id, "subjectId": ctx.caller.id}):
        raise NotFound("passkey")
    await audit.record(ctx, "passkey.removed", passkey_id, customer_id=audit.own_client(ctx.caller))


def to_passkey(stored: models.StoredPasskey) -> models.Passkey:
    """Return a passkey as its user sees it."""
    return {
        "_id": stored["_id"],
        "name": stored["name"],
        "createdAt": stored["createdAt"],
        "lastUsedAt": stored["lastUsedAt"],
    }


# --- signing in ------------------------------------------------------------------------------------------------------


def request_options(services: Services, challenge: str, existing: list[models.StoredPasskey]) -> dict[str, object]:
    """Return what a browser needs to answer with one of these passkeys, or any. Raises Conflict without a host name."""
    options = generate_authentication_options(
        rp_id=_require_relying_party(services),
        challenge=base64url_to_bytes(challenge),
        allow_credentials=[_descriptor(each) for each in existing],
        user_verification=_VERIFIED,
    )
    return options_to_json_dict(options)


async def verify(
    services: Services, passkey: models.StoredPasskey, challenge: str, assertion: models.Assertion
) -> bool:
    """Return whether an assertion by a passkey answers a challenge; the use is stored then."""
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
    return await store.record_use(services, passkey, verified.new_sign_count)


def _descriptor(passkey: models.StoredPasskey) -> structs.PublicKeyCredentialDescriptor:
    return structs.PublicKeyCredentialDescriptor(id=base64url_to_bytes(passkey["credentialId"]))


def _as_json(credential: Mapping[str, Any]) -> dict[str, Any]:
    return {**credential, "type": "public-key", "clientExtensionResults": {}}
