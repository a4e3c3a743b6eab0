"""OAuth grants of assistants: a coach's consent, the authorization code, the tokens, and their revocation."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import structlog

from coaching_service.core import audit
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import (
    APPLICATION_PREFIX,
    OFFLINE_SCOPE,
    READ_PERMISSIONS,
    WEBHOOKS_SCOPE,
    Principal,
    Via,
    new_token,
    permissions_of,
    session_only,
    token_hash,
)
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.errors import NotFound, Unauthorized
from coaching_service.core.events import DomainEvent
from coaching_service.core.fields import Description, Private, output_of, private_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.people import account, api_keys, team
from coaching_service.people.account import Account
from coaching_service.people.team import Coach, CoachRemoved


@dataclass(frozen=True)
class ApplicationAllowed(DomainEvent):
    """A coach has allowed an application over REST these scopes."""

    client_id: str
    grant_id: ObjectId
    scopes: frozenset[str]


# --- OAuth grants as they are stored and returned: of assistants over MCP, of applications over REST ------------------


# What a coach allows an assistant: to read, to change, and to reach out: mail, messages, and work on many clients.
Scope = Literal["read", "change", "outreach"]
SCOPES: tuple[Scope, ...] = ("read", "change", "outreach")


class AuthorizationCode(TypedDict):
    """The code of a grant and what it is bound to; `usedAt` is null until it is exchanged for tokens.

    `named`: the authorization request contained `redirect_uri`, so the token request must repeat it.
    """

    hash: str
    challenge: str
    redirectUri: str
    named: bool
    resource: str
    usedAt: NotRequired[datetime | None]


class StoredAccessToken(TypedDict):
    """An access token by its hash, valid until `until`."""

    hash: str
    until: datetime


class StoredRefreshToken(TypedDict):
    """A refresh token by its hash; `spentAt` is null until it is used, `of` the token that it was returned for."""

    hash: str
    spentAt: datetime | None
    of: NotRequired[str]


class Grant(Stored):
    """An assistant that a coach has connected."""

    coachId: Annotated[ObjectId, Description("The coach on whose behalf it acts.")]
    clientId: Annotated[str, Description("The identifier of the registered OAuth application.")]
    clientName: Annotated[str, Description("The name of the OAuth application, as it registered.")]
    redirectHost: Annotated[str, Description("The host to which the authorization code was sent.")]
    readOnly: bool
    scopes: Annotated[
        list[Scope],
        Description(
            "What the coach allows. `outreach`: sending mail and messages, and changing several clients at once."
        ),
    ]
    confirmInChat: Annotated[
        bool,
        Description(
            "Whether the assistant may confirm itself what otherwise waits for the coach's approval: up to 5 messages "
            "and 20 other calls in 10 minutes."
        ),
    ]
    lastUsedAt: Annotated[datetime | None, Description("To the minute.")]


class StoredGrant(Grant):
    """A stored grant with its private fields.

    `requested`: the scopes of OAuth that the application asked for, as one text; absent in grants before scopes.
    """

    requested: NotRequired[Annotated[str, Private]]
    restScopes: NotRequired[Annotated[list[str], Private]]  # only of an application over REST
    code: Annotated[AuthorizationCode, Private]
    familyHash: NotRequired[Annotated[str, Private]]
    refresh: NotRequired[Annotated[list[StoredRefreshToken], Private]]
    access: NotRequired[Annotated[list[StoredAccessToken], Private]]
    expiresAt: Annotated[datetime, Private]


class ApplicationGrant(Stored):
    """An application that a coach has allowed over REST."""

    coachId: Annotated[ObjectId, Description("The coach on whose behalf it acts.")]
    clientId: Annotated[str, Description("The identifier of the registered OAuth application.")]
    clientName: Annotated[str, Description("The name of the OAuth application, as it registered.")]
    redirectHost: Annotated[str, Description("The host to which the authorization code was sent.")]
    scopes: Annotated[list[str], Description("What the coach allows, such as `customers:read`.")]
    lastUsedAt: Annotated[datetime | None, Description("To the minute.")]


class GrantWithCoach(Grant):
    """A grant with its coach and the company."""

    restScopes: NotRequired[list[str]]
    coach: Coach
    company: Account


# --- Grants in the database: one document for each consent; its code and tokens are stored as hashes ------------------


CODE_LIFETIME = timedelta(minutes=5)
ACCESS_LIFETIME = timedelta(hours=1)
GRANT_LIFETIME = timedelta(days=60)
# A spent refresh token is accepted again for so long: applications refresh in parallel.
REFRESH_GRACE = timedelta(seconds=90)
_MAX_TOKENS = 20

grants = Documents[StoredGrant](
    "assistantGrants",
    (Index(("coachId", "createdAt")), Index(("createdAt", "_id")), Index(("clientId",))),
    private=private_of(StoredGrant),
    secret=True,
    global_indexes=(
        Index(("code.hash",), unique=True),
        Index(("familyHash",), unique=True, partial_filter=(("familyHash", {"$exists": True}),)),
        Index(("access.hash",)),
        Index(("clientId",)),
        Index(("expiresAt",), expire_after=0),
    ),
    cross_company_reason="a grant is found by the hash of its code or token before its company is known",
    placement=Unsharded("a token is unique among all companies, and found by its hash at each request"),
    transfer=NotExported("tokens"),
)


_OF_ASSISTANTS: Filter = {"restScopes": None}
_OF_APPLICATIONS: Filter = {"restScopes": {"$ne": None}}


def with_scopes(grant: Grant) -> Grant:
    """Return a grant with its scopes: one stored before there were any allows all, or only reading."""
    grant["scopes"] = grant.get("scopes") or (["read"] if grant["readOnly"] else [*SCOPES])
    return grant


def is_unexpired() -> Filter:
    """Return the condition of grants that have not expired, which are still stored for a while."""
    return {"expiresAt": {"$gt": now()}}


async def find(services: Services, where: Filter) -> StoredGrant | None:
    """Return the unexpired grant of `where`, of any company, or None."""
    grant: Any = await grants.across_companies(services).find_one(where | is_unexpired())
    return grant  # type: ignore[no-any-return]  # the driver's documents are untyped


async def _end(services: Services, grant: StoredGrant) -> None:
    """Delete a grant of any company that was found by one of its secrets."""
    if (await grants.across_companies(services).delete_one({"_id": grant["_id"]})).deleted_count:
        await _record_ended_elsewhere(services, [grant])


async def _record_ended_elsewhere(services: Services, ended: Sequence[StoredGrant]) -> None:
    """Store in the audit logs of their companies, which no caller belongs to, which grants have ended."""
    for company_id in {grant["companyId"] for grant in ended}:
        with suppress(NotFound):  # the company is deleted
            ctx = Context(services, await team.get_owner(services, company_id), interface="system")
            await _record_ended(ctx, [grant for grant in ended if grant["companyId"] == company_id])


async def _record_ended(
    ctx: Context, ended: Sequence[core_fields.Part[StoredGrant, Literal["_id", "clientName", "restScopes"]]]
) -> None:
    for each in ended:
        is_assistant = each.get("restScopes") is None
        action: audit.AuditAction = "assistant.revoked" if is_assistant else "application.revoked"
        await audit.record(ctx, action, each["_id"], each["clientName"])


async def rotate(
    services: Services, grant_id: ObjectId, refresh_hash: str, new_refresh_hash: str, access_hash: str
) -> bool:
    """Replace a refresh token by new tokens; returns whether it was unspent, or spent within the grace period.

    One whose successor has been spent has none: the application has received the successor.
    """
    at = now()
    grace = at - REFRESH_GRACE
    valid = {"hash": refresh_hash, "$or": [{"spentAt": None}, {"spentAt": {"$gte": grace}}]}
    is_spent_now = {"$and": [{"$eq": ["$$each.hash", refresh_hash]}, {"$eq": ["$$each.spentAt", None]}]}
    marked = {
        "$map": {
            "input": "$refresh",
            "as": "each",
            "in": {"$mergeObjects": ["$$each", {"spentAt": {"$cond": [is_spent_now, at, "$$each.spentAt"]}}]},
        }
    }
    still_valid = {"$or": [{"$eq": ["$$each.spentAt", None]}, {"$gte": ["$$each.spentAt", grace]}]}
    refresh = {"$filter": {"input": marked, "as": "each", "cond": still_valid}}
    access = {"$filter": {"input": "$access", "as": "each", "cond": {"$gt": ["$$each.until", at]}}}
    change = {
        "refresh": _last(
            {"$concatArrays": [refresh, [{"hash": new_refresh_hash, "spentAt": None, "of": refresh_hash}]]}
        ),
        "access": _last({"$concatArrays": [access, [{"hash": access_hash, "until": at + ACCESS_LIFETIME}]]}),
        "expiresAt": at + GRANT_LIFETIME,
        "updatedAt": at,
    }
    spent_successor = {"of": refresh_hash, "spentAt": {"$ne": None}}
    where = {"_id": grant_id, "refresh": {"$elemMatch": valid, "$not": {"$elemMatch": spent_successor}}}
    return (await grants.across_companies(services).update_one(where, [{"$set": change}])).modified_count == 1


def _last(tokens: Document) -> Document:
    return {"$slice": [tokens, -_MAX_TOKENS]}


log = structlog.get_logger("coaching_service.assistants")


class GrantRejected(Exception):
    """A code or token is not accepted; the message may be sent to the application."""


@dataclass(frozen=True)
class GrantRequest:
    """What an OAuth application asks a coach to consent to.

    `client_id` and `client_name` identify the application. The code is sent to `redirect_uri`; `redirect_uri_given`:
    the request contained it, so the token request must repeat it. `challenge` is the SHA-256 of the code verifier
    (base64url, no padding); `resource` is what the tokens are for. `client_host` is the host that describes the
    application, if it identifies itself by a document there. `requested` are the scopes of OAuth that it asks
    for, and `offered` what the coach can allow of them; of an application over REST these are `rest_scopes`.
    """

    client_id: str
    client_name: str
    redirect_uri: str
    redirect_host: str
    challenge: str
    resource: str
    redirect_uri_given: bool = True
    client_host: str | None = None
    requested: str = ""
    offered: tuple[Scope, ...] = SCOPES
    rest_scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenPair:
    """An access token that is valid for `seconds`, and a refresh token if the application uses them.

    `requested` and `scopes`: what the application asked for, and what it was allowed; `rest_scopes` of one over REST.
    """

    access: str
    refresh: str | None
    requested: str = ""
    scopes: tuple[Scope, ...] = SCOPES
    rest_scopes: tuple[str, ...] = ()
    seconds: int = int(ACCESS_LIFETIME.total_seconds())


# --- Consent ---------------------------------------------------------------------------------------------------------


@transactional
async def create_grant(
    ctx: Context,
    request: GrantRequest,
    scopes: Collection[Scope],
    *,
    confirm_in_chat: bool = False,
    rest_scopes: Collection[str] = (),
) -> str:
    """Store the caller's consent to `scopes`, and return the code, which can be exchanged for tokens once.

    `confirm_in_chat`: the assistant may confirm calls itself, within limits. `rest_scopes`: of an application over
    REST, which has no other ones.
    """
    authorization_code = new_token()
    code: AuthorizationCode = {
        "hash": token_hash(authorization_code),
        "challenge": request.challenge,
        "redirectUri": request.redirect_uri,
        "named": request.redirect_uri_given,
        "resource": request.resource,
        "usedAt": None,
    }
    fields = {
        "coachId": ctx.caller.id,
        "clientId": request.client_id,
        "clientName": request.client_name,
        "redirectHost": request.redirect_host,
        "readOnly": "change" not in scopes,
        "scopes": [scope for scope in SCOPES if scope in scopes],
        "requested": request.requested,
        "confirmInChat": confirm_in_chat,
        "code": code,
        "lastUsedAt": None,
        "expiresAt": now() + CODE_LIFETIME,
    }
    allowed = [scope for scope in request.rest_scopes if scope in rest_scopes]
    if request.rest_scopes:
        fields["restScopes"] = allowed
    grant = await grants.insert(ctx, fields)
    if request.rest_scopes:
        await ctx.publish(ApplicationAllowed(request.client_id, grant["_id"], frozenset(allowed)))
    action: audit.AuditAction = "application.allowed" if request.rest_scopes else "assistant.allowed"
    await audit.record(ctx, action, grant["_id"], request.client_name)
    return authorization_code


# --- Tokens ----------------------------------------------------------------------------------------------------------


async def exchange_code(
    services: Services,
    code: str,
    client_id: str,
    verifier: str,
    redirect_uri: str | None,
    *,
    refreshable: bool,
    for_tools: bool = False,
) -> TokenPair:
    """Return the first tokens for a code. `for_tools`: the request names the MCP endpoint as their resource.

    Raises GrantRejected; a code that was used before revokes the tokens that it was exchanged for.
    """
    grant = await find(services, {"code.hash": token_hash(code)})
    if grant is None or grant["clientId"] != client_id:
        raise GrantRejected("The code is unknown, expired or another client's")
    stored = grant["code"]
    if stored["usedAt"] is not None:
        raise await _reject_replayed_code(services, grant)
    if redirect_uri != stored["redirectUri"] and (redirect_uri is not None or stored["named"]):
        raise GrantRejected("redirect_uri is not the one the code was sent to")
    digest = hashlib.sha256(verifier.encode("ascii", "replace")).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if not hmac.compare_digest(challenge, stored["challenge"]):
        raise GrantRejected("code_verifier does not fit the code_challenge")
    access, family = await _new_access_token(services, grant, for_tools=for_tools), new_token()
    refreshable = refreshable and OFFLINE_SCOPE in grant.get("restScopes", (OFFLINE_SCOPE,))
    refresh = f"{family}.{new_token()}" if refreshable else None
    at = now()
    fields: Document = {
        "code.usedAt": at,
        "access": [{"hash": token_hash(access), "until": at + ACCESS_LIFETIME}],
        "expiresAt": at + (ACCESS_LIFETIME if refresh is None else GRANT_LIFETIME),
        "updatedAt": at,
    }
    if refresh is not None:
        tokens = [{"hash": token_hash(refresh), "spentAt": None}]
        fields |= {"familyHash": token_hash(family), "refresh": tokens}
    unused = {"_id": grant["_id"], "code.usedAt": None}
    if not (await grants.across_companies(services).update_one(unused, {"$set": fields})).modified_count:
        raise await _reject_replayed_code(services, grant)
    return _pair(grant, access, refresh)


def _pair(grant: StoredGrant, access: str, refresh: str | None) -> TokenPair:
    scopes = tuple(with_scopes(grant)["scopes"])
    return TokenPair(access, refresh, grant.get("requested", ""), scopes, tuple(grant.get("restScopes", ())))


async def _reject_replayed_code(services: Services, grant: StoredGrant) -> GrantRejected:
    await _end(services, grant)
    log.warning("authorization code used twice", grant=str(grant["_id"]), company=str(grant["companyId"]))
    return GrantRejected("The code has been used; the tokens it was exchanged for have been revoked")


async def refresh_tokens(services: Services, token: str, client_id: str, *, for_tools: bool = False) -> TokenPair:
    """Return new tokens for a refresh token, which is then spent; it is accepted again within a short grace period.

    `for_tools`: the request names the MCP endpoint as their resource. Raises GrantRejected; a token that was spent
    earlier revokes the whole grant, and so does any other token of its family, since spent tokens are not stored
    forever.
    """
    family = token.partition(".")[0]
    grant = await find(services, {"familyHash": token_hash(family)})
    if grant is None or grant["clientId"] != client_id:
        raise GrantRejected("The refresh token is unknown, expired or another client's")
    access, renewed = await _new_access_token(services, grant, for_tools=for_tools), f"{family}.{new_token()}"
    if not await rotate(services, grant["_id"], token_hash(token), token_hash(renewed), token_hash(access)):
        await _end(services, grant)
        log.warning("spent refresh token", grant=str(grant["_id"]), company=str(grant["companyId"]))
        raise GrantRejected("The refresh token has been used; its grant has been revoked")
    return _pair(grant, access, renewed)


async def _new_access_token(services: Services, grant: StoredGrant, *, for_tools: bool) -> str:
    """Return a new access token of a grant.

    Raises GrantRejected for the MCP endpoint if the consent is for REST; also, and deletes the grant, if its coach or
    company is deleted; CompanySuspended.
    """
    if for_tools and "restScopes" in grant:
        raise GrantRejected("The consent is for REST, not for the MCP endpoint")
    if await team.get_principal(services, grant["coachId"]) is None:
        await _end(services, grant)
        raise GrantRejected("The coach who gave consent no longer exists")
    return APPLICATION_PREFIX + new_token() if "restScopes" in grant else new_token()


async def revoke_token(services: Services, token: str, client_id: str) -> None:
    """Delete the grant of an access or refresh token, if it belongs to this application."""
    grant = await find(services, {"familyHash": token_hash(token.partition(".")[0])})
    grant = grant or await find(services, {"access.hash": token_hash(token)})
    if grant is not None and grant["clientId"] == client_id:
        await _end(services, grant)


async def authenticate(services: Services, access_token: str, *, is_application: bool = False) -> Principal:
    """Return the coach who gave consent to an assistant as a principal; with `is_application`, to one over REST.

    Raises Unauthorized if the token is unknown or expired, of the other kind, or the coach is deleted;
    CompanySuspended.
    """
    access_hash = token_hash(access_token)
    unexpired = {"$elemMatch": {"hash": access_hash, "until": {"$gt": now()}}}
    kind = _OF_APPLICATIONS if is_application else _OF_ASSISTANTS
    where = {"access.hash": access_hash, "access": unexpired} | kind
    grant: GrantWithCoach | None = await team.find_with_coach(grants, services, where)
    if grant is None:
        raise Unauthorized()
    principal = _to_principal(grant)
    await team.set_last_used(grants, services, grant)
    return principal


async def load_principal(services: Services, grant_id: ObjectId) -> Principal | None:
    """Return the coach who gave consent as a principal, as `authenticate` does; None if the grant is revoked or
    expired.

    Raises CompanySuspended.
    """
    grant = await team.find_with_coach(grants, services, {"_id": grant_id} | is_unexpired())
    return None if grant is None else _to_principal(grant)


def _to_principal(grant: GrantWithCoach) -> Principal:
    rest_scopes = grant.get("restScopes")
    via: Via = "mcp" if rest_scopes is None else "application"
    coach = team.to_principal(grant["coach"], account.to_company(grant["company"]), via, grant["_id"])
    if rest_scopes is not None:
        return replace(
            coach,
            permissions=coach.permissions & permissions_of(rest_scopes),
            coach_permissions=coach.permissions,
            scopes=frozenset(rest_scopes),
            read_only=not any(scope == WEBHOOKS_SCOPE or scope.endswith(":write") for scope in rest_scopes),
            restricted=True,
            application=grant["clientName"],
            oauth_client_id=grant["clientId"],
        )
    scopes = with_scopes(grant)["scopes"]
    return replace(
        coach,
        permissions=coach.permissions if "change" in scopes else coach.permissions & READ_PERMISSIONS,
        read_only="change" not in scopes,
        may_read="read" in scopes,
        may_reach_out="outreach" in scopes,
        may_confirm=grant["confirmInChat"],
        restricted="change" not in scopes,
        application=grant["clientName"],
    )


# --- Consents to applications, for what goes on without a token: webhooks ---------------------------------------------


async def list_companies(ctx: Context, client_id: str, scope: str) -> set[ObjectId]:
    """Return the companies where a consent to a scope of an application lasts."""
    where = _consents(client_id, scope)
    return set(await grants.across_companies(ctx.services).distinct("companyId", where, session=ctx.session))


async def has_consent(ctx: Context, client_id: str, scope: str, *, without: ObjectId | None = None) -> bool:
    """Return whether a consent to a scope of an application lasts in the company, other than `without`."""
    where = _consents(client_id, scope) | {"_id": {"$ne": without}}
    return await grants.find_one(ctx, where, ("_id",)) is not None


async def list_principals(ctx: Context, client_id: str, scope: str) -> list[Principal]:
    """Return the coaches of the company who allow an application a scope, as principals narrowed by their consents."""
    allowed = await grants.find(ctx, _consents(client_id, scope), sort=("createdAt",), fields=("_id",))
    loaded = [await load_principal(ctx.services, grant["_id"]) for grant in allowed]
    return [principal for principal in loaded if principal is not None]


def _consents(client_id: str, scope: str) -> Filter:
    return {"clientId": client_id, "restScopes": scope} | is_unexpired()


# --- Managing grants -------------------------------------------------------------------------------------------------


async def name_credentials(ctx: Context, change_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the names of the assistants and keys that made changes, by change, as far as the caller may see them.

    Those that have been revoked since keep their name as long as the audit log knows it.
    """
    made_with, keys, connected = await gather_reads(
        ctx, history.load_credentials(ctx, change_ids), api_keys.list_api_keys(ctx), list_assistants(ctx)
    )
    names = {key["_id"]: key["name"] for key in keys} | {each["_id"]: each["clientName"] for each in connected}
    if ended := {*made_with.values()} - names.keys():
        made_by = api_keys.own_or_all(ctx).get("coachId")
        names |= await audit.find_credential_names(ctx, ended, made_by)
    return {change_id: names[credential] for change_id, credential in made_with.items() if credential in names}


async def is_connected(ctx: Context, grant_id: ObjectId) -> bool:
    """Return whether the company has this grant and it has not expired."""
    return await grants.find_one(ctx, {"_id": grant_id} | is_unexpired(), ("_id",)) is not None


async def revoke_all_of_client(services: Services, client_id: str) -> None:
    """Delete the grants of an OAuth application that is deleted, of all companies."""
    of_client = {"clientId": client_id}
    ended: list[Any] = await grants.across_companies(services).find(of_client).to_list(None)
    await grants.across_companies(services).delete_many(of_client)
    await _record_ended_elsewhere(services, ended)


async def revoke_all_of_coach(ctx: Context, coach_id: ObjectId) -> None:
    """Delete every grant of a coach, in the caller's transaction."""
    of_coach = {"coachId": coach_id}
    ended = await grants.find(ctx, of_coach, fields=("clientName", "restScopes"))
    await grants.delete_many(ctx, of_coach)
    await _record_ended(ctx, ended)


async def revoke_grants_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Delete every grant of a removed coach."""
    await revoke_all_of_coach(ctx, event.coach_id)


# --- Assistants over REST ---------------------------------------------------------------------------------------------


routes = Routes(
    "/coach/assistants",
    tag="Assistants",
    path_descriptions={"assistantId": "The identifier of the connected assistant."},
)


@routes.get("", access=session_only(), returns=list_of(output_of(Grant, name="Assistant")))
async def list_assistants(ctx: Context) -> list[Grant]:
    """List the connected assistants.

    Those that the caller has connected; for the owner, all of the company.
    """
    used = api_keys.own_or_all(ctx) | _OF_ASSISTANTS | {"code.usedAt": {"$ne": None}}
    return [with_scopes(grant) for grant in await grants.find(ctx, used, sort=("createdAt", "_id"))]


@routes.delete("/{assistantId}", access=session_only())
@transactional
async def disconnect_assistant(ctx: Context, assistant_id: ObjectId) -> None:
    """Disconnect an assistant.

    Its tokens fail from the next request.
    """
    if (grant := await grants.delete(ctx, api_keys.own_or_all(ctx) | _OF_ASSISTANTS | {"_id": assistant_id})) is None:
        raise NotFound("assistant")
    await _record_ended(ctx, [grant])


# --- Applications over REST -------------------------------------------------------------------------------------------


application_routes = Routes(
    "/coach/applications",
    tag="Applications",
    path_descriptions={"grantId": "The identifier of the application's access."},
)


@application_routes.get("", access=session_only(), returns=list_of(output_of(ApplicationGrant, name="Application")))
async def list_applications(ctx: Context) -> list[ApplicationGrant]:
    """List the applications that may use REST.

    Those that the caller has allowed; for the owner, all of the company.
    """
    used = api_keys.own_or_all(ctx) | _OF_APPLICATIONS | {"code.usedAt": {"$ne": None}}
    found = await grants.find(ctx, used, sort=("createdAt", "_id"), including=("restScopes",))
    names = [name for name in core_fields.names_of(ApplicationGrant) if name not in private_of(ApplicationGrant)]
    shown = [{**grant, "scopes": grant.get("restScopes", [])} for grant in found]
    return [cast("ApplicationGrant", {name: each[name] for name in names}) for each in shown]


@application_routes.delete("/{grantId}", access=session_only())
@transactional
async def revoke_application(ctx: Context, grant_id: ObjectId) -> None:
    """Revoke the access of an application.

    Its tokens fail from the next request.
    """
    if (grant := await grants.delete(ctx, api_keys.own_or_all(ctx) | _OF_APPLICATIONS | {"_id": grant_id})) is None:
        raise NotFound("application")
    await _record_ended(ctx, [grant])
