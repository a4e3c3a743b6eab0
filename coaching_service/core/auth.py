"""Access rules: declared with each route, page and tool, and checked before the request is read."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Literal, NamedTuple

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from coaching_service.core import errors
from coaching_service.core.dates import local_date
from coaching_service.core.ids import ObjectId

# --- The authenticated caller: a coach or a client of one company, and the credential used ----------------------------


Via = Literal["session", "apiKey", "mcp", "application"]


@dataclass(frozen=True, slots=True)
class Company:
    """The company's settings that every request needs.

    `load_unit` is `kg` or `lb`; `has_stored_loads`: loads may be stored in that unit; it may be false for a moment
    after that has become true. `is_converting`: the loads are being converted to the other unit; `loads_converted_at`:
    when the last conversion ended (UTC).
    `has_overrides`: the company has changed shared exercises.
    `sandbox_of` is the company whose sandbox this one is, if it is one. `is_suspended`: the operator has suspended the
    company, so this is not the company of a request, but of background work or the operator's. `holds_mail`: mail to
    others waits until the owner's e-mail address is confirmed. `requires_second_factor`: sessions of coaches need one.
    `has_declined`: a client has turned off assistants or applications at some time.
    """

    id: ObjectId
    name: str
    timezone: str
    load_unit: str
    has_stored_loads: bool = False
    has_overrides: bool = True
    sandbox_of: ObjectId | None = None
    is_suspended: bool = False
    holds_mail: bool = False
    is_converting: bool = False
    loads_converted_at: datetime | None = None
    requires_second_factor: bool = False
    has_declined: bool = False

    @property
    def is_sandbox(self) -> bool:
        """Whether no user can sign in, and mail is stored instead of sent."""
        return self.sandbox_of is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity and rights a request is evaluated with.

    `role` is `KEY` of an API key that acts as the company: then `id` and `name` are the key's.
    `permissions` are already narrowed by the restrictions of the credential; `customers_scope` is `all` or `assigned`;
    `credential_id` identifies the key or session. `restricted`: an API key with fewer rights than the coach who
    created it. `may_read` and `may_reach_out` restrict assistants: reading, and sending mail and messages or changing
    several clients at once. `may_confirm`: an assistant may confirm calls itself, within limits. `mcp_only`: the
    key is refused over REST. `application` is the name of the OAuth application of an assistant, or of one over REST;
    then `oauth_client_id` is its identifier, `scopes` are what the coach has allowed it, and `permissions` are narrowed
    from the `coach_permissions`.
    `only_customer_id` and `tool_groups` are what the address of an assistant is narrowed to: one client, groups of
    tools. `timezone` and `own_load_unit` are known of a client; else the company's apply. `has_second_factor` is
    false for the session of a coach, also of one who acts as a client, that began with a password alone.
    """

    id: ObjectId
    company: Company
    role: Literal["OWNER", "EMPLOYEE", "KEY", "CUSTOMER"]
    via: Via
    name: str
    email: str | None
    credential_id: ObjectId
    permissions: frozenset[str] = field(default_factory=frozenset)
    customers_scope: Literal["all", "assigned"] = "all"
    impersonated_by: ObjectId | None = None
    read_only: bool = False
    restricted: bool = False
    may_read: bool = True
    may_reach_out: bool = True
    may_confirm: bool = False
    mcp_only: bool = False
    application: str | None = None
    oauth_client_id: str | None = None
    scopes: frozenset[str] | None = None
    coach_permissions: frozenset[str] = frozenset()
    only_customer_id: ObjectId | None = None
    tool_groups: frozenset[str] | None = None
    timezone: str | None = None
    own_load_unit: str | None = None
    has_second_factor: bool = True

    @property
    def load_unit(self) -> str:
        """Return the unit in which pages and tools show and take loads: the client's, else the company's."""
        return self.own_load_unit or self.company.load_unit

    @property
    def is_coach(self) -> bool:
        """Whether the caller is a coach (owner or employee), or a key that acts as the company."""
        return self.role != "CUSTOMER"

    @property
    def is_unrestricted_owner(self) -> bool:
        """Whether the caller is the owner, by session or unrestricted key."""
        return self.role == "OWNER" and not self.restricted and self.scopes is None

    def today(self, timezone: str | None = None) -> date:
        """Return today's date in `timezone`, by default the client's, else the company's."""
        return local_date(datetime.now(UTC), timezone or self.timezone or self.company.timezone)


class KeyHolder(NamedTuple):
    """The coach of an API key with the key's restrictions, and when it expires (UTC), if it does."""

    principal: Principal
    expires_at: datetime | None


@dataclass(frozen=True)
class Access:
    """The access rule of one operation.

    `audience`: `public` (credentials are ignored), `anyone` (any valid credential), `coach` or `customer`.
    `permissions`: all of these are required of a coach; `any_permission`: at least one of these, and the service
    requires the one for its subject. `session_only`: API keys are rejected. `owner_only`: employees are rejected.
    `sandbox_only`: only keys of a sandbox are accepted. `while_converting`: also while loads are being converted.
    `scope_area`: applications need the scopes of this area, `messages` or `webhooks`, not those of the permissions.
    `with_password_only`: also by a session without the second factor that the company requires.
    """

    audience: Literal["public", "anyone", "coach", "customer"]
    permissions: tuple[str, ...] = ()
    session_only: bool = False
    owner_only: bool = False
    any_permission: tuple[str, ...] = ()
    sandbox_only: bool = False
    while_converting: bool = False
    scope_area: str = ""
    with_password_only: bool = False

    def __str__(self) -> str:
        words = ["owner" if self.owner_only else self.audience, *self.permissions, " or ".join(self.any_permission)]
        if self.session_only:
            words.append("session only")
        if self.sandbox_only:
            words.append("key of a sandbox")
        return ", ".join(filter(None, words))


def public() -> Access:
    """Return the access that needs no credential; one that is sent is ignored."""
    return Access("public")


def anyone() -> Access:
    """Any valid credential, a client's session included."""
    return Access("anyone")


def any_session() -> Access:
    """Any session, a coach's or a client's."""
    return Access("anyone", session_only=True)


def coach(*permissions: str) -> Access:
    """Return a coach with these permissions, by session or API key."""
    return Access("coach", permissions)


def coach_with_any(*permissions: str) -> Access:
    """Return the access of a coach with at least one of these permissions; the service requires the right one."""
    return Access("coach", any_permission=permissions)


def session_only(*permissions: str) -> Access:
    """Return a coach's interactive session; API keys are rejected (contract 2)."""
    return Access("coach", permissions, session_only=True)


def owner() -> Access:
    """Return the company's owner, by session or unrestricted key."""
    return Access("coach", owner_only=True)


def sandbox_key() -> Access:
    """Return the unrestricted key of a sandbox."""
    return Access("coach", owner_only=True, sandbox_only=True)


def owner_session() -> Access:
    """Return the company's owner in an interactive session."""
    return Access("coach", session_only=True, owner_only=True)


def customer() -> Access:
    """Return a client's own session."""
    return Access("customer")


def even_while_converting(access: Access) -> Access:
    """Return the same access, also while the company's loads are being converted to another unit."""
    return replace(access, while_converting=True)


def within(scope_area: str, access: Access) -> Access:
    """Return the same access, for which an application needs the scopes of an area, `messages` or `webhooks`."""
    return replace(access, scope_area=scope_area)


def with_password_only(access: Access) -> Access:
    """Return the same access, also by a session without the second factor that the company requires."""
    return replace(access, with_password_only=True)


def check_access(access: Access, principal: Principal | None, *, writes: bool) -> None:
    """Raise Unauthorized or Forbidden unless `principal` has access, LoadsConverting if it has to wait.

    `writes`: the operation changes something.
    """
    if access.audience == "public":
        return
    if principal is None:
        raise errors.Unauthorized()
    if (error := find_denial(access, principal, writes=writes)) is not None:
        raise error
    require_no_conversion(access, principal)


def require_no_conversion(access: Access, principal: Principal) -> None:
    """Raise LoadsConverting while the loads of the caller's company are being converted, if the operation must wait."""
    if principal.company.is_converting and not access.while_converting:
        raise errors.LoadsConverting()


def find_denial(access: Access, principal: Principal, *, writes: bool) -> errors.Forbidden | None:
    """Return the error with which this principal may not call the operation, or None if it may."""
    if principal.company.requires_second_factor and not (principal.has_second_factor or access.with_password_only):
        return errors.SecondFactorMissing()
    if access.session_only and principal.via != "session":
        return errors.Forbidden(
            "This operation needs an interactive session; API keys are refused", code="SESSION_REQUIRED"
        )
    if access.audience == "coach" and not principal.is_coach:
        return errors.Forbidden("This operation is for coaches", code="CLIENT_SESSION")
    if access.audience == "customer" and principal.is_coach:
        return errors.Forbidden("This operation is for a client's own session", code="CLIENT_SESSION")
    if access.owner_only and not principal.is_unrestricted_owner:
        return errors.Forbidden("This operation is for the company's owner, without restrictions", code="OWNER_ONLY")
    if access.sandbox_only and not (principal.company.is_sandbox and principal.via == "apiKey"):
        return errors.Forbidden("This operation needs the key of a sandbox", code="SANDBOX")
    if principal.read_only and writes and principal.scopes is None:
        subject = "API key" if principal.via == "apiKey" else "access"
        return errors.Forbidden(f"This {subject} is read-only", code="KEY_READ_ONLY")
    return _find_missing(access, for_operation(access, principal), writes=writes)


def _find_missing(access: Access, principal: Principal, *, writes: bool) -> errors.Forbidden | None:
    """Return the error for a scope, or a permission, that the principal has not."""
    if principal.scopes is not None:
        for scopes in scopes_of(access, writes=writes):
            if not principal.scopes.intersection(scopes):
                return errors.ScopeMissing(scopes[0])
        if principal.read_only and writes:
            return errors.Forbidden("The application may only read", code="KEY_READ_ONLY")
    missing = [permission for permission in access.permissions if permission not in principal.permissions]
    if access.any_permission and not principal.permissions.intersection(access.any_permission):
        missing += access.any_permission
    return errors.PermissionMissing(missing[0]) if missing else None


def for_operation(access: Access, principal: Principal) -> Principal:
    """Return the principal of one operation: an application's has the permissions that its messages, or webhooks, need.

    It has the scope for them, and its coach the permissions.
    """
    if principal.scopes is None or not access.scope_area:
        return principal
    needed = principal.coach_permissions.intersection((*access.permissions, *access.any_permission))
    return replace(principal, permissions=principal.permissions | needed)


def require_permission(principal: Principal, permission: str) -> None:
    """Raise Forbidden unless `principal` has the permission."""
    if principal.scopes is not None and permission in principal.coach_permissions - principal.permissions:
        raise errors.ScopeMissing(scope_of(permission))
    if permission not in principal.permissions:
        raise errors.PermissionMissing(permission)


# --- The permissions of a coaching business: areas times actions, named `area.action` on the wire ---------------------


ACTIONS = ("view", "create", "edit", "delete")


class Area:
    """One area of the business; its four permissions are `CUSTOMERS.VIEW` ("customers.view") and so on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.VIEW, self.CREATE, self.EDIT, self.DELETE = (f"{name}.{action}" for action in ACTIONS)


CUSTOMERS = Area("customers")
EXERCISES = Area("exercises")
PROGRAMS = Area("programs")
FORMS = Area("forms")
METRICS = Area("metrics")
NUTRITION = Area("nutrition")

AREAS = (CUSTOMERS, EXERCISES, PROGRAMS, FORMS, METRICS, NUTRITION)
# To manage webhooks: it belongs to no area, and has no actions.
WEBHOOKS = "webhooks"
ALL_PERMISSIONS = frozenset({WEBHOOKS, *(f"{area.name}.{action}" for area in AREAS for action in ACTIONS)})
READ_PERMISSIONS = frozenset(area.VIEW for area in AREAS)


# --- Scopes: what a coach allows an OAuth application over REST, of the areas of permissions, and others ----------


MESSAGES_SCOPES = "messages"
WEBHOOKS_SCOPE = "webhooks"
OFFLINE_SCOPE = "offline_access"
REST_SCOPES = (
    *(f"{area}:{verb}" for area in (*(each.name for each in AREAS), MESSAGES_SCOPES) for verb in ("read", "write")),
    WEBHOOKS_SCOPE,
    OFFLINE_SCOPE,
)


def scope_of(permission: str) -> str:
    """Return the scope that an application needs for a permission, such as `customers:read` for `customers.view`."""
    if permission == WEBHOOKS:
        return WEBHOOKS_SCOPE
    area, _, action = permission.partition(".")
    return f"{area}:{'read' if action == 'view' else 'write'}"


def scopes_of(access: Access, *, writes: bool) -> list[tuple[str, ...]]:
    """Return the scopes that an application needs for an operation: of each tuple, one is enough."""
    if access.scope_area == WEBHOOKS_SCOPE:
        return [(WEBHOOKS_SCOPE,)]
    if access.scope_area:
        return [(f"{access.scope_area}:{'write' if writes else 'read'}",)]
    needed = [(scope_of(permission),) for permission in access.permissions]
    alternatives = tuple(dict.fromkeys(map(scope_of, access.any_permission)))
    return [*dict.fromkeys(needed), *([alternatives] if alternatives else [])]


def permissions_of(scopes: Collection[str]) -> frozenset[str]:
    """Return the permissions that scopes allow at most."""
    return frozenset(permission for permission in ALL_PERMISSIONS if scope_of(permission) in scopes)


# --- What a caller may see now: clients, areas and days ---------------------------------------------------------------
# Lists, feeds, events, changes, workouts, tools, pages and exports ask `Visibility.allows`, and nothing else.


@dataclass(frozen=True, slots=True)
class Visibility:
    """What the caller of one request may see.

    `customer_ids`: the clients in scope; None: all of the company. `permissions`: a coach's; None: a client, who
    sees all areas of their own data. `hidden_days`: the days that are hidden from a client, as `YYYY-MM-DD`.
    `is_owner`: the owner, without restrictions.
    """

    permissions: frozenset[str] | None
    customer_ids: frozenset[ObjectId] | None = None
    hidden_days: frozenset[str] = frozenset()
    is_owner: bool = False

    def allows(self, *, customer_id: ObjectId | None = None, area: Area | None = None, day: str | None = None) -> bool:
        """Return whether the caller may see what concerns this client, belongs to this area and is of this day.

        Each is left out where a thing has none.
        """
        if customer_id is not None and self.customer_ids is not None and customer_id not in self.customer_ids:
            return False
        if area is not None and self.permissions is not None and area.VIEW not in self.permissions:
            return False
        return day not in self.hidden_days


def areas_of(principal: Principal) -> Visibility:
    """Return what the principal may see of a client, and a day, that have been checked: only areas are left to ask."""
    return Visibility(principal.permissions if principal.is_coach else None)


# --- Secrets: random tokens, their hashes, and authenticated encryption under rotatable master keys -------------------


API_KEY_PREFIX = "cs_ak_"
TEST_KEY_PREFIX = "cs_test_"
APPLICATION_PREFIX = "cs_at_"  # of access tokens of applications
API_KEY_PREFIXES = (API_KEY_PREFIX, TEST_KEY_PREFIX)  # of keys of companies, and of their sandboxes
_NONCE = 12
_KEY_ID = 4


class SecretUnreadable(Exception):
    """No master key of this process can decrypt a sealed value."""


def new_token() -> str:
    """Return a secret of 256 random bits: 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


def new_api_key(prefix: str = API_KEY_PREFIX) -> str:
    """Return a new API key: `prefix` and 43 URL-safe characters."""
    return prefix + new_token()


def token_hash(token: str) -> str:
    """Return the SHA-256 of a random token, hexadecimal, for storage. Never use it for passwords."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_master_key() -> str:
    """Return a new master key for the setting SECRET_KEYS: 32 random bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def parse_master_key(text: str) -> bytes:
    """Return the 32 bytes of a master key. Raises ValueError with a sentence for the operator."""
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError("a secret key is 32 bytes in base64; make one with: coaching-service new-secret-key")
    return key


def fingerprint_of(sealed: bytes) -> str:
    """Return the fingerprint of the master key of `sealed`: it identifies the key and reveals nothing about it."""
    return sealed[:_KEY_ID].hex()


class _MasterKey:
    def __init__(self, key: bytes) -> None:
        def derive(purpose: bytes) -> bytes:
            return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"coaching-service " + purpose).derive(key)

        self.id = hashlib.sha256(b"key id" + key).digest()[:_KEY_ID]
        self.cipher = AESGCM(derive(b"encrypt"))
        self.hash_key, self.sign_key = derive(b"keyed hash"), derive(b"sign")


class Vault:
    """Encrypts, decrypts, hashes and signs with the master keys: the first (newest) one writes, all of them read."""

    def __init__(self, master_keys: Sequence[bytes]) -> None:
        if not master_keys:
            raise ValueError("at least one master key is needed")
        self._keys = [_MasterKey(key) for key in master_keys]

    def __repr__(self) -> str:
        return f"Vault({len(self._keys)} keys)"

    def seal(self, plain: bytes, bound_to: str) -> bytes:
        """Encrypt `plain` (AES-256-GCM) with `bound_to` as associated data: it decrypts only for the same record."""
        newest, nonce = self._keys[0], secrets.token_bytes(_NONCE)
        return newest.id + nonce + newest.cipher.encrypt(nonce, plain, bound_to.encode())

    def open(self, sealed: bytes, bound_to: str) -> bytes:
        """Decrypt what `seal` returned. Raises SecretUnreadable if no key fits or the data was changed."""
        key_id, nonce, body = sealed[:_KEY_ID], sealed[_KEY_ID : _KEY_ID + _NONCE], sealed[_KEY_ID + _NONCE :]
        for key in self._keys:
            if key.id == key_id:
                try:
                    return key.cipher.decrypt(nonce, body, bound_to.encode())
                except InvalidTag:
                    break
        fingerprint = fingerprint_of(sealed)
        raise SecretUnreadable(
            f"encrypted with the master key {fingerprint}, which is not in SECRET_KEYS; add it after the newest"
        )

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints of the configured master keys, newest first."""
        return [key.id.hex() for key in self._keys]

    def has_key_for(self, sealed: bytes) -> bool:
        """Return whether the master key of `sealed` is configured."""
        return sealed[:_KEY_ID] in (key.id for key in self._keys)

    def is_current(self, sealed: bytes) -> bool:
        """Return whether `sealed` is encrypted with the newest master key."""
        return sealed[:_KEY_ID] == self._keys[0].id

    def keyed_hash(self, secret: str) -> str:
        """Return the HMAC-SHA-256 of a secret under the newest master key, hexadecimal, for lookups."""
        return self.keyed_hashes(secret)[0]

    def keyed_hashes(self, secret: str) -> list[str]:
        """Return the keyed hash under every master key, newest first, for lookups during a key rotation."""
        encoded = secret.encode("utf-8", "surrogatepass")
        return [hmac.digest(key.hash_key, encoded, "sha256").hex() for key in self._keys]

    def sign(self, text: str) -> str:
        """Return the signature of `text` (HMAC-SHA-256, base64url without padding)."""
        return self._sign(self._keys[0], text)

    def verify_signature(self, text: str, signature: str) -> bool:
        """Return whether `signature` is valid for `text`, compared in constant time."""
        given = signature.encode("utf-8", "surrogatepass")
        matches = [hmac.compare_digest(self._sign(key, text).encode(), given) for key in self._keys]
        return any(matches)

    def seal_value(self, purpose: str, value: object) -> str:
        """Return a value that JSON can have as a text for a URL or cookie, with a signature for `purpose`."""
        text = base64.urlsafe_b64encode(orjson.dumps(value)).decode()
        return f"{text}.{self.sign(f'{purpose}:{text}')}"

    def open_value(self, purpose: str, sealed: str) -> Any:
        """Return the value of a text of `seal_value`; None for one of another service or purpose."""
        text, _, signature = sealed.partition(".")
        is_ours = bool(text) and self.verify_signature(f"{purpose}:{text}", signature)
        return orjson.loads(base64.urlsafe_b64decode(text)) if is_ours else None

    def derive_text(self, purpose: str) -> str:
        """Return a secret derived from the oldest master key for `purpose` (the demo company's password)."""
        return self._sign(self._keys[-1], f"derive:{purpose}")[:24]

    @staticmethod
    def _sign(key: _MasterKey, text: str) -> str:
        digest = hmac.digest(key.sign_key, text.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
