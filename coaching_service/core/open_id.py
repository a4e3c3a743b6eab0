"""Sign-in at an OpenID provider that the operator has named: the code flow with PKCE, and whom it signs in.

What the provider sends is untrusted until its signature, issuer, audience and nonce are verified.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from coaching_service.core.outbound import OutboundClient, OutboundError

DISCOVERY_SECONDS, RETRY_SECONDS, KEYS_SECONDS = 3600, 10, 30
_LEEWAY_SECONDS = 60
# Signatures with a key that only the provider has: neither `none` nor those with the secret that the client has too.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_SCOPE = "openid email profile"
_MAX_SUBJECT, _MAX_EMAIL, _MAX_NAME = 255, 254, 200


class ProviderError(Exception):
    """The provider did not sign a user in. The message is for the log, and has nothing that was received."""


class ProviderUnavailable(ProviderError):
    """The provider does not answer as providers do."""


@dataclass(frozen=True, slots=True)
class ProviderUser:
    """A user whom the provider has signed in: `subject` is unique at the `issuer`; it has verified the `email`."""

    issuer: str
    subject: str
    email: str
    name: str


@dataclass(frozen=True, slots=True)
class ClientRegistration:
    """What the provider knows of this service, and what `name` users read of the provider.

    `creates_in`: the identifier of the company whose employees new users become, if any.
    """

    issuer: str
    client_id: str
    client_secret: str
    name: str
    redirect_uri: str
    creates_in: str | None = None


@dataclass
class OpenIdProvider:
    """The provider, with its metadata and keys, which are read when they are needed."""

    registration: ClientRegistration
    outbound: OutboundClient
    _metadata: dict[str, Any] = field(default_factory=dict, init=False)
    _metadata_until: float = field(default=0, init=False)
    _keys: KeySet | None = field(default=None, init=False)
    _keys_read_at: float = field(default=float("-inf"), init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def authorization_url(self, state: str, nonce: str, verifier: str) -> str:
        """Return where the user signs in. Raises ProviderUnavailable."""
        endpoint = _text_of(await self._discover(), "authorization_endpoint")
        digest = hashlib.sha256(verifier.encode()).digest()
        parameters = {
            "response_type": "code",
            "client_id": self.registration.client_id,
            "redirect_uri": self.registration.redirect_uri,
            "scope": _SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"

    async def redeem(self, code: str, nonce: str, verifier: str, issuer: str | None) -> ProviderUser:
        """Return the user whom an answer of the provider is about; `issuer`: who it says has sent it.

        Raises ProviderError for an answer that is not the provider's own about this sign-in, or without a verified
        e-mail address.
        """
        metadata = await self._discover()
        is_missing = issuer is None and metadata.get("authorization_response_iss_parameter_supported") is True
        if is_missing or issuer not in (None, self.registration.issuer):
            raise ProviderError("the answer is of another issuer")
        registration = self.registration
        body = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": registration.redirect_uri,
            "code_verifier": verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        methods = metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if "client_secret_basic" in methods:
            credentials = f"{quote(registration.client_id, safe='')}:{quote(registration.client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        else:
            body |= {"client_id": registration.client_id, "client_secret": registration.client_secret}
        tokens = await self._request(_text_of(metadata, "token_endpoint"), headers, urlencode(body).encode())
        claims = await self._verify(metadata, _text_of(tokens, "id_token"), nonce)
        if "email" not in claims and "userinfo_endpoint" in metadata:
            headers = {"Authorization": f"Bearer {_text_of(tokens, 'access_token')}"}
            user = await self._request(_text_of(metadata, "userinfo_endpoint"), headers)
            if user.get("sub") != claims["sub"]:
                raise ProviderError("the description of the user is of another one")
            claims |= {name: user[name] for name in ("email", "email_verified", "name") if name in user}
        if claims.get("email_verified") is not True:
            raise ProviderError("the e-mail address is not verified")
        email, subject = _text_of(claims, "email"), _text_of(claims, "sub")
        if len(email) > _MAX_EMAIL or "@" not in email or len(subject) > _MAX_SUBJECT:
            raise ProviderError("the e-mail address or the subject is too long")
        name = claims.get("name")
        name = name.strip()[:_MAX_NAME] if isinstance(name, str) else ""
        return ProviderUser(registration.issuer, subject, email, name or email.partition("@")[0])

    async def _verify(self, metadata: dict[str, Any], token: str, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token. Raises ProviderError if it is not valid for this client and sign-in."""
        client_id = self.registration.client_id
        claims_of = jwt.JWTClaimsRegistry(
            now=int(time.time()),
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": self.registration.issuer},
            aud={"essential": True, "value": client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            header = jws.extract_compact(token.encode()).headers()
            keys = await self._find_keys(metadata, header.get("kid"))
            claims = jwt.decode(token, keys, algorithms=_ALGORITHMS).claims
            claims_of.validate(claims)
        except (JoseError, ValueError, TypeError) as error:
            raise ProviderError(f"the ID token is not valid: {type(error).__name__}") from None
        audience = claims["aud"]
        is_for_others = isinstance(audience, list) and audience != [client_id]
        if claims.get("azp", None if is_for_others else client_id) != client_id:
            raise ProviderError("the ID token is for another client")
        return claims

    async def _find_keys(self, metadata: dict[str, Any], key_id: object) -> KeySet:
        """Return the one key with this identifier, or the only key; they are read again for one that is not known.

        Raises ProviderError if there is none.
        """
        for _ in range(2):
            known = [] if self._keys is None else list(self._keys)
            found = known if key_id is None else [key for key in known if key.kid == key_id]
            if len(found) == 1:
                return KeySet(found)
            if not await self._read_keys(metadata):
                break
        raise ProviderError("the ID token is signed with an unknown key")

    async def _read_keys(self, metadata: dict[str, Any]) -> bool:
        """Read the provider's keys, unless they were read less than 30 s ago; returns whether they were read."""
        async with self._lock:
            if time.monotonic() - self._keys_read_at < KEYS_SECONDS:
                return False
            self._keys_read_at = time.monotonic()
            keys = await self._request(_text_of(metadata, "jwks_uri"), {"Accept": "application/json"})
            try:
                signing = [key for key in keys["keys"] if key.get("use") != "enc"]
                self._keys = KeySet.import_key_set({"keys": signing})
            except (JoseError, LookupError, ValueError, TypeError, AttributeError):
                raise ProviderUnavailable("the keys are not valid") from None
            return True

    async def _discover(self) -> dict[str, Any]:
        """Return the metadata of the provider, read at most an hour ago. Raises ProviderUnavailable."""
        async with self._lock:
            if time.monotonic() >= self._metadata_until:
                self._metadata, self._metadata_until = {}, time.monotonic() + RETRY_SECONDS
                address = f"{self.registration.issuer.rstrip('/')}/.well-known/openid-configuration"
                metadata = await self._request(address, {"Accept": "application/json"})
                if metadata.get("issuer") != self.registration.issuer:
                    raise ProviderUnavailable("the metadata are of another issuer")
                self._metadata, self._metadata_until = metadata, time.monotonic() + DISCOVERY_SECONDS
        if not self._metadata:
            raise ProviderUnavailable("it could not be reached a moment ago")
        return self._metadata

    async def _request(self, url: str, headers: dict[str, str], body: bytes | None = None) -> dict[str, Any]:
        """Return the JSON object that an endpoint answers. Raises ProviderUnavailable, ProviderError if it refuses."""
        try:
            send = self.outbound.get(url, headers) if body is None else self.outbound.post(url, body, headers)
            response = await send
            answer = orjson.loads(response.body)
        except OutboundError as error:
            raise ProviderUnavailable(f"an endpoint could not be reached: {error.code}") from None
        except orjson.JSONDecodeError:
            raise ProviderUnavailable("an endpoint did not answer JSON") from None
        if response.status // 100 == 4 and body is not None:
            raise ProviderError("the code is not accepted")
        if response.status != 200 or response.is_truncated or not isinstance(answer, dict):
            raise ProviderUnavailable(f"an endpoint answered {response.status}")
        return answer


def _text_of(values: dict[str, Any], name: str) -> str:
    """Return a text of what the provider has sent. Raises ProviderError if it is missing."""
    value = values.get(name)
    if not isinstance(value, str) or not value:
        raise ProviderError(f"there is no {name}")
    return value
