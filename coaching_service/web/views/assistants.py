"""The connected assistants, the consent page (OAuth) that connects one, and their proposals."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

from aiohttp import hdrs, web

from coaching_service.core import auth, errors
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Reason, without_inner_marks
from coaching_service.core.validation import Choice, Identifier, ListOf, Text
from coaching_service.integrations.proposals import service as proposals
from coaching_service.integrations.proposals.models import Proposal, Rejection, Status
from coaching_service.oauth import clients, endpoints
from coaching_service.people import assistants, team
from coaching_service.people.changes.service import name_kind
from coaching_service.web import pages as web_pages
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.formatting import quantity
from coaching_service.web.views.history import COMPANY_PATH, list_changes

pages = web_pages.Pages("")

_assistants = pages.below("/app/settings/assistants")
_SCOPE_NAMES: dict[assistants.Scope, str] = {"read": "Read", "change": "Change", "outreach": "Contact people"}


@_assistants.get("", access=auth.session_only(), template="settings/assistants.html")
async def assistants_page(ctx: Context) -> dict[str, Any]:
    """The assistants that the coach connected; for the owner, all of the company."""
    connected, coaches = await gather_reads(ctx, assistants.list_assistants(ctx), team.list_coaches(ctx))
    return {
        "assistants": connected,
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "scope_names": _SCOPE_NAMES,
        "mcp_url": f"{ctx.services.base_url}/mcp",
    }


@_assistants.get("/{assistantId}", access=auth.session_only(auth.CUSTOMERS.VIEW), template="settings/assistant.html")
async def assistant_page(ctx: Context, assistant_id: ObjectId, query: web_pages.PartQuery) -> dict[str, Any]:
    """What an assistant may do and what it has changed, newest first, with Undo."""
    assistant = await _get_assistant(ctx, assistant_id)
    path = f"/app/settings/assistants/{assistant_id}"
    variables = await list_changes(ctx, path, query, via="assistant", credential_id=assistant_id)
    return {
        **variables,
        "history_path": COMPANY_PATH,
        "assistant": assistant,
        "assistant_path": path,
        "scope_names": _SCOPE_NAMES,
    }


@_assistants.confirm(
    "/{assistantId}/disconnect",
    assistants.disconnect_assistant,
    "{assistant[clientName]} disconnected.",
    access=auth.session_only(),
    template="settings/disconnect_assistant.html",
)
async def disconnect_assistant(ctx: Context, assistant_id: ObjectId) -> dict[str, Any]:
    """Disconnect an assistant: its next request is rejected."""
    return {"assistant": await _get_assistant(ctx, assistant_id)}


async def _get_assistant(ctx: Context, assistant_id: ObjectId) -> assistants.Grant:
    return errors.require_by_id(await assistants.list_assistants(ctx), assistant_id, "assistant")


# --- Applications over REST: those a coach has allowed, and those the owner has registered ----------------------------


_applications = pages.below("/app/settings/applications")
_OF_SCOPES = {
    "customers:read": "See your clients, their plans and what they have done",
    "customers:write": "Add and change clients, their plans and their results",
    "exercises:read": "See your exercises",
    "exercises:write": "Change your exercises",
    "programs:read": "See your programs",
    "programs:write": "Change your programs",
    "forms:read": "See your forms and what clients have answered",
    "forms:write": "Change your forms, and review answers",
    "metrics:read": "See metrics and what was measured",
    "metrics:write": "Change metrics and what was measured",
    "nutrition:read": "See nutrition plans",
    "nutrition:write": "Change nutrition plans",
    "messages:read": "Read your conversations with clients",
    "messages:write": "Write to your clients",
    auth.WEBHOOKS_SCOPE: "Be told when something changes",
    auth.OFFLINE_SCOPE: "Keep access until you revoke it",
}


class _NewApplication(TypedDict):
    """An application to register; addresses one in each line."""

    name: Annotated[str, Text()]
    redirectUris: Annotated[str, Text(max_length=10_000)]
    scopes: Annotated[list[str], ListOf(Choice(*auth.REST_SCOPES), minimum=1, maximum=len(auth.REST_SCOPES))]


@_applications.get("", access=auth.session_only(), template="settings/applications.html")
async def applications_page(ctx: Context) -> dict[str, Any]:
    """The applications that the coach has allowed, of all coaches for the owner, and those the owner has registered."""
    allowed, coaches = await gather_reads(ctx, assistants.list_applications(ctx), team.list_coaches(ctx))
    return {
        "allowed": allowed,
        "registered": await clients.list_registered(ctx) if ctx.caller.role == "OWNER" else [],
        "coach_names": {each["_id"]: each["name"] for each in coaches},
        "scopes": _OF_SCOPES,
        "shown": None,
    }


@_applications.post("", access=auth.owner_session(), form=_NewApplication, on=applications_page)
async def register_application(ctx: Context, form: _NewApplication) -> web_pages.Render:
    """Register an application, and show its secret."""
    uris = [line.strip() for line in form["redirectUris"].splitlines() if line.strip()]
    new: clients.NewApplication = {"name": form["name"], "redirectUris": uris, "scopes": form["scopes"]}
    try:
        application, secret = await clients.register_application(ctx, new)
    except errors.InvalidFields as error:
        [first, *_] = error.errors
        raise errors.invalid_field("redirectUris", first["message"], code=first["code"]) from None
    return _show_secret(application, secret)


@_applications.post("/{applicationId}/rotate-secret", access=auth.owner_session(), on=applications_page)
async def rotate_application_secret(ctx: Context, application_id: ObjectId) -> web_pages.Render:
    """Show a new secret of an application."""
    secret = await clients.rotate_secret(ctx, application_id)
    return _show_secret(await clients.get_registered(ctx, application_id), secret)


def _show_secret(application: clients.OAuthClient, secret: str) -> web_pages.Render:
    shown = {"name": application["name"], "clientId": application["clientId"], "secret": secret}
    return web_pages.Render({"shown": shown}, "The secret was shown once. Rotate it to see a new one.")


@_applications.confirm(
    "/{applicationId}/delete",
    clients.delete_application,
    "{application[name]} deleted.",
    access=auth.owner_session(),
    template="settings/delete_application.html",
)
async def delete_application(ctx: Context, application_id: ObjectId) -> dict[str, Any]:
    """Delete a registered application: its next request is rejected."""
    return {"application": await clients.get_registered(ctx, application_id)}


@_applications.confirm(
    "/allowed/{grantId}/revoke",
    assistants.revoke_application,
    "Access of {application[clientName]} revoked.",
    to=_applications.prefix,
    access=auth.session_only(),
    template="settings/revoke_application.html",
)
async def revoke_application(ctx: Context, grant_id: ObjectId) -> dict[str, Any]:
    """Revoke what an application was allowed: its next request is rejected."""
    return {"application": errors.require_by_id(await assistants.list_applications(ctx), grant_id, "application")}


# --- The OAuth consent page: a coach allows or denies an application access to their data -----------------------------


_consent = pages.below("/oauth")


class _Decision(TypedDict):
    decision: Literal["allow", "deny"]
    read: Annotated[bool, Default(False)]
    change: Annotated[bool, Default(False)]
    outreach: Annotated[bool, Default(False)]
    scopes: Annotated[list[str], ListOf(Choice(*auth.REST_SCOPES), maximum=len(auth.REST_SCOPES)), Default(list)]
    confirmInChat: Annotated[bool, Default(False)]


@_consent.get(
    "/authorize", access=auth.public(), template="oauth/consent.html", with_request=True, external_redirect=True
)
async def consent_page(ctx: Context, request: web.Request) -> dict[str, Any] | web.Response:
    """The consent page. An invalid request is rejected before the coach has to sign in."""
    try:
        authorization = await _read_authorization(ctx, request)
    except endpoints.RejectedWithRedirect as rejection:
        return _redirect_to_client(rejection.location)
    return {
        "grant": authorization.grant_request,
        "query": request.rel_url.raw_query_string,
        "scopes": _OF_SCOPES,
    }


@_consent.post("/authorize", access=auth.public(), on=consent_page, with_request=True, external_redirect=True)
async def decide(ctx: Context, request: web.Request, form: _Decision) -> web.Response:
    """Process the coach's decision and redirect the browser to the application."""
    try:
        authorization = await _read_authorization(ctx, request)
    except endpoints.RejectedWithRedirect as rejection:
        return _redirect_to_client(rejection.location)
    if form["decision"] == "deny":
        return _redirect_to_client(endpoints.deny(ctx.services, authorization))
    scopes = [scope for scope in authorization.grant_request.offered if form[scope]]
    rest_scopes = [scope for scope in authorization.grant_request.rest_scopes if scope in form["scopes"]]
    if not {*scopes, *rest_scopes} - {auth.OFFLINE_SCOPE}:
        raise errors.BadRequest("Choose at least one kind of access, or deny")
    location = await endpoints.approve(
        ctx, authorization, scopes, confirm_in_chat=form["confirmInChat"], rest_scopes=rest_scopes
    )
    return _redirect_to_client(location)


async def _read_authorization(ctx: Context, request: web.Request) -> endpoints.AuthorizationRequest:
    """Return the authorization request of a signed-in coach.

    Raises BadRequest, RejectedWithRedirect, Unauthorized and Forbidden.
    """
    try:
        authorization = await endpoints.parse_request(ctx.services, request.query, ctx.network_address)
    except endpoints.NotRedirectable as rejection:
        raise errors.BadRequest(str(rejection)) from None
    auth.check_access(auth.coach(), ctx.principal, writes=True)
    return authorization


def _redirect_to_client(location: str) -> web.Response:
    # Not web.HTTPFound, which encodes the URL again: clients compare it byte by byte.
    headers = {hdrs.LOCATION: location, hdrs.CACHE_CONTROL: "no-store", hdrs.REFERRER_POLICY: "no-referrer"}
    return web.Response(status=302, headers=headers)


# --- Proposals of assistants: what waits for the coach's decision, and what was decided -------------------------------


_proposals = pages.below("/app/proposals")
_PATH = "/app/proposals"
_PAGE_SIZE = 30
_MOST_WAITING = 20  # shown at once, so that a coach sees what is approved together
_STATUS_NAMES: dict[Status, str] = {
    "pending": "Waiting",
    "executed": "Done",
    "rejected": "Rejected",
    "expired": "Expired",
    "failed": "Not permitted",
    "recalled": "Recalled",
    "stale": "Out of date",
}


class _ProposalsQuery(web_pages.PartQuery):
    status: Annotated[Status | None, Choice(*_STATUS_NAMES)]


class _SeveralProposals(web_pages.ReturnTo):
    """The proposals of one assistant that were shown: what it proposes later is not approved with them."""

    proposalId: Annotated[list[ObjectId], ListOf(Identifier(), minimum=1, maximum=_MOST_WAITING)]


@_proposals.get("", access=auth.session_only(), template="proposals/list.html")
async def proposals_page(ctx: Context, query: _ProposalsQuery) -> dict[str, Any]:
    """What assistants have proposed to the coach, and to the owner all of the company, newest first."""
    status = query["status"]
    page = await proposals.list_proposals(ctx, {"limit": _PAGE_SIZE, "after": query["after"], "status": status})
    filter_url = web_pages.list_url(_PATH, {"status": status})
    names = await _load_coach_names(ctx)
    return {
        "proposals": [_describe(each, names) for each in page["docs"]],
        "statuses": _STATUS_NAMES,
        "filter_url": filter_url,
        "next_url": filter_url(after=page["nextCursor"]) if page["hasMore"] else None,
    }


@_proposals.get("/{proposalId}", access=auth.session_only(), template="proposals/proposal.html")
async def proposal_page(ctx: Context, proposal_id: ObjectId) -> dict[str, Any]:
    """A proposal: what it changes, before and after, and the decision."""
    proposal, names = await gather_reads(ctx, proposals.get(ctx, proposal_id), _load_coach_names(ctx))
    return {"proposal": _describe(proposal, names)}


_decide = partial(_proposals.post, access=auth.session_only(), request_class="bulk", idempotent=True)


@_decide("/{proposalId}/approve", form=web_pages.ReturnTo, on=proposal_page)
async def approve_proposal(ctx: Context, proposal_id: ObjectId, form: web_pages.ReturnTo) -> web_pages.Redirect:
    """Approve a proposal: what it proposes is done."""
    path = f"{_PATH}/{proposal_id}"
    try:
        await proposals.approve(ctx, proposal_id)
    except errors.Forbidden:  # the proposal has failed, and its page says why
        return web_pages.Redirect(path)
    return web_pages.Redirect(local_path(form["next"], path), "Approved and done.")


class _Rejection(web_pages.ReturnTo, Rejection):
    """Where to return to, and what the assistant reads."""


@_decide("/{proposalId}/reject", form=_Rejection, on=proposal_page)
async def reject_proposal(ctx: Context, proposal_id: ObjectId, form: _Rejection) -> web_pages.Redirect:
    """Reject a proposal: nothing is done."""
    await proposals.reject(ctx, proposal_id, form["note"])
    return web_pages.Redirect(local_path(form["next"], f"{_PATH}/{proposal_id}"), "Rejected. Nothing was changed.")


@_decide("/approve-all", form=_SeveralProposals, on=proposals_page)
async def approve_all_of_assistant(ctx: Context, form: _SeveralProposals) -> web_pages.Redirect:
    """Approve what was shown of one assistant, the oldest first."""
    done = 0
    for proposal_id in reversed(form["proposalId"]):
        with suppress(errors.Conflict, errors.Forbidden, errors.NotFound):  # it stays, or has failed
            await proposals.approve(ctx, proposal_id)
            done += 1
    notice = f"{quantity(done, 'proposal')} approved and done."
    if rest := len(form["proposalId"]) - done:
        return web_pages.Redirect(_PATH, f"{notice} {quantity(rest, 'proposal')} could not be done: see below.")
    return web_pages.Redirect(local_path(form["next"], _PATH), notice)


@_decide("/reject-all", form=_SeveralProposals, on=proposals_page)
async def reject_all_of_assistant(ctx: Context, form: _SeveralProposals) -> web_pages.Redirect:
    """Reject what was shown of one assistant."""
    done = await proposals.reject_many(ctx, form["proposalId"])
    notice = f"{quantity(done, 'proposal')} rejected. Nothing was changed."
    return web_pages.Redirect(local_path(form["next"], _PATH), notice)


async def list_waiting_by_assistant(ctx: Context) -> list[dict[str, Any]]:
    """Return what waits for the coach, the newest first, by assistant."""
    waiting = (await proposals.list_proposals(ctx, {"limit": _MOST_WAITING, "after": None, "status": "pending"}))[
        "docs"
    ]
    groups: dict[ObjectId, dict[str, Any]] = {}
    names = await _load_coach_names(ctx) if waiting else {}
    for proposal in waiting:
        group = groups.setdefault(
            proposal["assistant"]["_id"], {"name": proposal["assistant"]["name"], "proposals": []}
        )
        group["proposals"].append(_describe(proposal, names))
    return list(groups.values())


async def _load_coach_names(ctx: Context) -> dict[ObjectId, str]:
    """Return the names of the other coaches, for the owner, who also decides for them."""
    if ctx.caller.role != "OWNER":
        return {}
    return {coach["_id"]: coach["name"] for coach in await team.list_coaches(ctx) if coach["_id"] != ctx.caller.id}


def _describe(proposal: Proposal, coach_names: Mapping[ObjectId, str]) -> dict[str, Any]:
    """Return a proposal in words. `coach_name`: the coach for whom it is made, if that is not the caller.

    A client whom the proposal creates has no page under this identifier.
    """
    changes = proposal["changes"]
    created = {
        each["customer"]["_id"]
        for each in changes
        if each["kind"] == "customer" and each["before"] is None and each["customer"]
    }
    return {
        **proposal,
        "summary": without_inner_marks(proposal["summary"]),
        "path": f"{_PATH}/{proposal['_id']}",
        "status_name": _STATUS_NAMES[proposal["status"]],
        "why": " and ".join(Reason[name].value for name in proposal["reasons"]),
        "coach_name": coach_names.get(proposal["coachId"]),
        "created": created,
        "changes": [{**change, "what": name_kind(change["kind"]).capitalize()} for change in changes],
    }
