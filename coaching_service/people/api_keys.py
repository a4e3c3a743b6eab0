"""API keys. A key acts as the coach who created it, or as the company, narrowed by its own restrictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import RAISE, ValidationError, fields
from marshmallow.validate import OneOf

from coaching_service.core import audit, auth
from coaching_service.core import fields as core_fields
from coaching_service.core.database.across_companies import Sealed
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.errors import Forbidden, InvalidApiKey, NotFound, Unavailable, invalid_field
from coaching_service.core.events import EventType
from coaching_service.core.fields import input_of, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Text
from coaching_service.people import account, team
from coaching_service.people.account import Account
from coaching_service.people.team import PERMISSIONS, Coach, CoachRemoved, Permissions

# --- API keys as they are sent, stored and returned -------------------------------------------------------------------


ActsAs = Literal["coach", "company"]


class DateTimeInput(fields.Field[datetime]):
    """A time in ISO 8601 (`2026-03-02T08:30:00Z`), read as UTC; without a time zone it is taken as UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> datetime:
        try:
            time = datetime.fromisoformat(value)
            utc = time.astimezone(UTC) if time.tzinfo else time
        except (TypeError, ValueError, OverflowError):
            raise ValidationError("must be a time in ISO 8601, such as 2026-03-02T08:30:00Z") from None
        Date().deserialize(str(utc.date()), attr)
        return utc.replace(tzinfo=None, microsecond=utc.microsecond // 1000 * 1000)


class OptionalPermissions(Permissions):
    """Permissions, or null for no restriction: unlike elsewhere, null is not an empty list."""

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """Return the permissions, or None."""
        return None if value is None else super().deserialize(value, attr, data, **kwargs)


class ApiKeyRestrictions(TypedDict):
    """What a key may not do although its coach may; null: no restriction.

    `outreach`: an assistant that uses the key over /mcp may send mail and messages, and change several clients at once.
    `confirmInChat`: it may confirm calls itself, within limits. `mcpOnly` (missing in older keys): it is refused over
    REST.
    """

    readOnly: Annotated[bool, core_fields.Default(False)]
    permissions: Annotated[
        list[str] | None,
        OptionalPermissions(),
        fields.List(fields.String()),
        core_fields.Description(request=PERMISSIONS),
    ]
    expiresAt: Annotated[datetime | None, DateTimeInput(metadata={"type": "string", "format": "date-time"})]
    outreach: Annotated[
        bool,
        core_fields.Default(False),
        core_fields.Description(
            "Over /mcp, whether an assistant with this key may contact people and change several clients at once. It "
            "does not restrict REST."
        ),
    ]
    confirmInChat: Annotated[
        bool,
        core_fields.Default(False),
        core_fields.Description(
            "Over /mcp, whether an assistant with this key may confirm itself what otherwise waits for the coach's "
            "approval: up to 5 messages and 20 other calls in 10 minutes."
        ),
    ]
    mcpOnly: NotRequired[
        Annotated[
            bool,
            core_fields.Default(False),
            core_fields.Description("Whether the key is good at /mcp only: over REST it is refused (`KEY_MCP_ONLY`)."),
        ]
    ]


class KeyRights(TypedDict):
    """Whom a key acts as, and the rights of one that acts as the company; missing in older keys, of coaches."""

    actsAs: Annotated[
        ActsAs,
        Choice("coach", "company"),
        fields.String(validate=OneOf(("coach", "company"))),
        core_fields.Default("coach"),
        core_fields.Description(
            "`coach`: the coach who creates the key, with the same permissions and clients. `company`: the key itself, "
            "with `permissions` of its own for all clients; it survives every coach, and the owner creates it."
        ),
    ]
    permissions: Annotated[
        list[str] | None,
        OptionalPermissions(),
        fields.List(fields.String()),
        core_fields.Description(
            request=f"Only of a key that acts as the company, which needs them. {PERMISSIONS}",
            response="The permissions of a key that acts as the company; null: of the coach.",
        ),
    ]
    customersScope: Annotated[
        Literal["all"] | None,
        Choice("all", allow_none=True),
        fields.String(validate=OneOf(("all",))),
        core_fields.Description("`all` of a key that acts as the company; null: as the coach."),
    ]


class ApiKey(KeyRights, Stored):
    """A key, without its secret."""

    coachId: Annotated[
        ObjectId | None, core_fields.Description("The coach whom the key acts as; null if it acts as the company.")
    ]
    name: str
    prefix: str
    lastFour: str
    restrictions: ApiKeyRestrictions
    lastUsedAt: datetime | None
    hash: NotRequired[Annotated[str, core_fields.Private]]  # keyed
    sealed: NotRequired[Annotated[bytes, core_fields.Private]]  # the encrypted secret


class ApiKeyWithCoach(ApiKey):
    """A key with its coach and the company."""

    coach: NotRequired[Coach]  # of one that acts as the company: missing
    company: Account


class CreatedApiKey(ApiKey):
    """A key just created, with its secret."""

    key: str


_RESTRICTIONS = input_of(
    ApiKeyRestrictions, name="NewApiKeyRestrictions", description="What a key may not do although its coach may."
)


# Restrictions of a key; those that are missing do not apply.
NewRestrictions: TypeAlias = core_fields.Partial[ApiKeyRestrictions]


class NewApiKey(KeyRights):
    """A key to create."""

    name: Annotated[str, Text()]
    restrictions: Annotated[ApiKeyRestrictions | None, fields.Nested(_RESTRICTIONS, unknown=RAISE)]


class RevealedKey(TypedDict):
    """A key's secret."""

    key: str


# --- API keys in the database: found by keyed hash, stored encrypted --------------------------------------------------


keys = Documents[ApiKey](
    "apiKeys",
    (Index(("coachId", "name")), Index(("createdAt", "_id"))),
    private=core_fields.private_of(ApiKey),
    global_indexes=(Index(("hash",), unique=True),),
    cross_company_reason="a key is found by its hash before its company is known",
    is_cached=True,
    placement=Unsharded("a key is unique among all companies, and found by its hash"),
    transfer=NotExported("API keys"),
)

_SEALED = Sealed(keys, "apiKey")
_ORDER = ("createdAt", "_id")
_OF_COACH: KeyRights = {"actsAs": "coach", "permissions": None, "customersScope": None}
_DEFAULTS: ApiKeyRestrictions = {
    "readOnly": False,
    "permissions": None,
    "expiresAt": None,
    "outreach": False,
    "confirmInChat": False,
    "mcpOnly": False,
}


@transactional
async def create(
    ctx: Context,
    name: str,
    restrictions: ApiKeyRestrictions | NewRestrictions | None = None,
    *,
    acts_as: ActsAs = "coach",
    permissions: list[str] | None = None,
) -> CreatedApiKey:
    """Create a key of the caller, or one that acts as the company, and return it with its secret `key`.

    Raises InvalidFields if `expiresAt` is in the past, and unless `permissions` are those of a key that acts as the
    company; Forbidden if another than the owner creates one.
    """
    is_of_company = acts_as == "company"
    if is_of_company and ctx.caller.role != "OWNER":
        raise Forbidden("Only the owner creates a key that acts as the company", code="OWNER_ONLY")
    if is_of_company and permissions is None:
        raise invalid_field("permissions", "must be sent for a key that acts as the company", code="REQUIRED")
    if not is_of_company and permissions is not None:
        message = "are only of a key that acts as the company: restrict another with restrictions.permissions"
        raise invalid_field("permissions", message, code="NOT_OF_COMPANY")
    applied: ApiKeyRestrictions = {**_DEFAULTS, **(restrictions or {})}
    if (expires_at := applied["expiresAt"]) is not None and expires_at <= now():
        raise invalid_field("restrictions.expiresAt", "must be in the future", code="IN_THE_PAST")
    prefix = auth.TEST_KEY_PREFIX if ctx.caller.company.is_sandbox else auth.API_KEY_PREFIX
    secret, key_id = auth.new_api_key(prefix), ObjectId()
    vault = ctx.services.vault
    key = await keys.insert(
        ctx,
        {
            "_id": key_id,
            "coachId": None if is_of_company else ctx.caller.id,
            "actsAs": acts_as,
            "permissions": permissions,
            "customersScope": "all" if is_of_company else None,
            "name": name,
            "prefix": prefix,
            "lastFour": secret[-4:],
            "restrictions": applied,
            "lastUsedAt": None,
            "hash": vault.keyed_hash(secret),
            "sealed": _SEALED.seal(vault, key_id, secret.encode()),
        },
    )
    _report(ctx, "key.created", key_id)
    if ctx.operation:  # not of a new company
        await audit.record(ctx, "key.created", key_id, name)
    return cast("CreatedApiKey", {**key, "key": secret})


async def reveal(ctx: Context, key_id: ObjectId) -> str:
    """Return a key's secret and record that it was read.

    Raises NotFound if the caller has no such key, Unavailable if its master key is missing from the settings.
    """
    if (key := await keys.find_one(ctx, own_or_all(ctx) | {"_id": key_id}, ("sealed", "name"))) is None:
        raise NotFound("API key")
    try:
        secret = _SEALED.open(ctx.services.vault, key).decode()
    except auth.SecretUnreadable:
        raise Unavailable("This key cannot be read: the operator has to add its master key to the settings") from None
    await audit.record(ctx, "key.revealed", key_id, key["name"])
    return secret


async def is_usable(ctx: Context, key_id: ObjectId) -> bool:
    """Return whether the company has this key and it has not expired."""
    key = await keys.find_one(ctx, {"_id": key_id}, ("restrictions",))
    return key is not None and not _is_expired(key["restrictions"]["expiresAt"])


async def count_own(ctx: Context) -> int:
    """Return how many keys the caller has created, and not deleted."""
    return await keys.count(ctx, {"coachId": ctx.caller.id})


async def list_own_names(ctx: Context) -> list[str]:
    """Return the names and the last characters of the caller's keys, the oldest first."""
    own = await keys.find(ctx, {"coachId": ctx.caller.id}, sort=_ORDER, fields=("name", "lastFour"))
    return [f"{key['name']} (…{key['lastFour']})" for key in own]


async def revoke_own(ctx: Context, since: datetime | None) -> None:
    """Delete the caller's keys that were created since a time, or all, in the caller's transaction."""
    where: Filter = {"coachId": ctx.caller.id}
    if since is not None:
        where |= {"createdAt": {"$gte": since}}
    for key in await keys.find(ctx, where, sort=_ORDER):
        await keys.delete(ctx, {"_id": key["_id"]})
        _report(ctx, "key.revoked", key["_id"])
        await audit.record(ctx, "key.deleted", key["_id"], key["name"])


async def delete_keys_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Delete every key of a removed coach."""
    for key in await keys.find(ctx, {"coachId": event.coach_id}, fields=("name",)):
        _report(ctx, "key.revoked", key["_id"])
        await audit.record(ctx, "key.deleted", key["_id"], key["name"])
    await keys.delete_many(ctx, {"coachId": event.coach_id})


def _report(ctx: Context, event_type: EventType, key_id: ObjectId) -> None:
    """Report an event about a key, in the caller's transaction, if a request is its cause: not of a new company."""
    if ctx.operation:
        ctx.changes.events.append(LoggedEvent(event_type, None, {"keyId": key_id}))


async def find_name(ctx: Context, key_id: ObjectId) -> str | None:
    """Return the name of a key, or None."""
    key = await keys.find_one(ctx, {"_id": key_id}, ("name",))
    return None if key is None else key["name"]


async def find_secret(ctx: Context, name: str) -> str | None:
    """Return the secret of the caller's key with this name, or None."""
    key = await keys.find_one(ctx, {"coachId": ctx.caller.id, "name": name}, ("sealed",))
    return None if key is None else _SEALED.open(ctx.services.vault, key).decode()


def own_or_all(ctx: Context) -> Filter:
    """Return the condition of the keys or grants that the caller manages: their own, or all of the company."""
    return {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}


# --- Authentication --------------------------------------------------------------------------------------------------


async def authenticate(services: Services, secret: str) -> auth.Principal:
    """Return the coach of a key, or the key itself if it acts as the company, as a principal with its restrictions.

    It may have been read a moment ago (see `core/cached_reads.py`). Raises InvalidApiKey if the key is unknown, deleted
    or expired, CompanySuspended.
    """
    hashes = services.vault.keyed_hashes(secret)

    async def load() -> auth.KeyHolder:
        key: ApiKeyWithCoach | None = await team.find_with_coach(keys, services, {"hash": {"$in": hashes}})
        if key is None:
            raise InvalidApiKey()
        _require_unexpired(key["restrictions"]["expiresAt"])
        principal = _to_principal(key)
        await team.set_last_used(keys, services, key)
        return auth.KeyHolder(principal, key["restrictions"]["expiresAt"])

    holder = await services.key_holders.get(hashes[0], load)
    _require_unexpired(holder.expires_at)
    return holder.principal


async def load_principal(services: Services, key_id: ObjectId) -> auth.Principal | None:
    """Return the coach of a key as a principal, as `authenticate` does; None if it is deleted or expired.

    Raises CompanySuspended.
    """
    key: ApiKeyWithCoach | None = await team.find_with_coach(keys, services, {"_id": key_id})
    return None if key is None or _is_expired(key["restrictions"]["expiresAt"]) else _to_principal(key)


async def load_actor(services: Services, actor_id: ObjectId, via: auth.Via, key_id: ObjectId) -> auth.Principal | None:
    """Return who began something, a coach or a key that acts as the company, as a principal; None if it is gone.

    Raises CompanySuspended.
    """
    is_key = via == "apiKey" and actor_id == key_id
    return await load_principal(services, key_id) if is_key else await team.get_principal(services, actor_id)


def _to_principal(key: ApiKeyWithCoach) -> auth.Principal:
    restrictions, company = key["restrictions"], account.to_company(key["company"])
    if "coach" in key:
        actor = team.to_principal(key["coach"], company, "apiKey", key["_id"])
    else:
        held = frozenset(key["permissions"] or ())
        actor = auth.Principal(key["_id"], company, "KEY", "apiKey", key["name"], None, key["_id"], held)
    permissions = actor.permissions
    if restrictions["permissions"] is not None:
        permissions &= frozenset(restrictions["permissions"])
    if restrictions["readOnly"]:
        permissions &= auth.READ_PERMISSIONS
    restricted = restrictions["readOnly"] or restrictions["permissions"] is not None
    return replace(
        actor,
        permissions=permissions,
        read_only=restrictions["readOnly"],
        may_reach_out=restrictions["outreach"],
        may_confirm=restrictions["confirmInChat"],
        mcp_only=restrictions.get("mcpOnly", False),
        restricted=restricted,
    )


def _require_unexpired(expires_at: datetime | None) -> None:
    if _is_expired(expires_at):
        raise InvalidApiKey()


def _is_expired(expires_at: datetime | None) -> bool:
    return expires_at is not None and expires_at <= now()


# --- Rotation of master keys -----------------------------------------------------------------------------------------


async def count_unreadable(services: Services) -> dict[str, int]:
    """Return the number of keys encrypted under each master key that this process lacks, by its fingerprint."""
    sealed = [key["sealed"] async for key in _SEALED.iterate(services)]
    return Counter(auth.fingerprint_of(each) for each in sealed if not services.vault.has_key_for(each))


iterate_unreadable = _SEALED.iterate_unreadable


def rotate_master_key(services: Services) -> AsyncIterator[bool]:
    """Encrypt and hash every key under the newest master key; yields for each whether it changed."""
    return _SEALED.rotate_master_key(services, lambda key: {"hash": services.vault.keyed_hash(key.decode())})


# --- API keys over REST: an interactive session only ------------------------------------------------------------------


routes = Routes("/coach/api-keys", tag="API keys", path_descriptions={"keyId": "The identifier of the API key."})


@routes.get("", access=auth.session_only())
async def list_api_keys(ctx: Context) -> list[ApiKey]:
    """List the keys.

    The caller's own; for the owner, all of the company.
    """
    found = await keys.find(ctx, own_or_all(ctx), sort=_ORDER)
    return [{**_OF_COACH, **key} for key in found]


@routes.post(
    "",
    access=auth.session_only(),
    returns=output_of(CreatedApiKey, output_of(ApiKey)),
    example={"name": "Our backend", "restrictions": {"readOnly": True}},
)
async def create_api_key(ctx: Context, body: NewApiKey) -> CreatedApiKey:
    """Create a key.

    It acts as the caller, or with `actsAs: "company"` as the company, narrowed by `restrictions`. The secret can be
    read again by `reveal`.
    """
    return await create(
        ctx, body["name"], body["restrictions"], acts_as=body["actsAs"], permissions=body["permissions"]
    )


@routes.get("/{keyId}/reveal", access=auth.session_only())
async def reveal_api_key(ctx: Context, key_id: ObjectId) -> RevealedKey:
    """Read a key's secret again.

    Reading it is recorded in the audit log.
    """
    return {"key": await reveal(ctx, key_id)}


@routes.delete("/{keyId}", access=auth.session_only())
@transactional
async def delete_api_key(ctx: Context, key_id: ObjectId) -> None:
    """Revoke a key.

    It fails from the next request on, on every process.
    """
    if (key := await keys.delete(ctx, own_or_all(ctx) | {"_id": key_id})) is None:
        raise NotFound("API key")
    _report(ctx, "key.revoked", key_id)
    await audit.record(ctx, "key.deleted", key_id, key["name"])
