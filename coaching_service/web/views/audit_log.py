"""The audit log of the company for its owner, and for each user the own sign-ins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Any, TypedDict

from coaching_service.core import audit
from coaching_service.core.auth import Access, customer, owner_session, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.dates import midnight, next_midnight
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import SearchedDate
from coaching_service.people import audit_log, own_profile, team
from coaching_service.people.customers import service as customers
from coaching_service.people.sessions import service as sessions
from coaching_service.web.formatting import describe_device
from coaching_service.web.pages import Pages, Redirect, list_url

pages = Pages("")
_PATH = "/app/settings/audit-log"
_PART = 50
LABELS: dict[audit.AuditAction, str] = {
    "sign_in.succeeded": "Signed in",
    "sign_in.failed": "Failed to sign in",
    "second_factor.enabled": "Turned two-step sign-in on",
    "second_factor.disabled": "Turned two-step sign-in off",
    "passkey.added": "Added a passkey",
    "passkey.removed": "Removed a passkey",
    "password.changed": "Changed the password",
    "key.created": "Created an API key",
    "key.revealed": "Looked at an API key",
    "key.deleted": "Deleted an API key",
    "employee.created": "Added an employee",
    "employee.removed": "Removed an employee",
    "permissions.changed": "Changed permissions",
    "account.changed": "Changed company settings",
    "client.read": "Read the data of a client",
    "list.read": "Read a list",
    "client.exported": "Exported a client",
    "client.archived": "Archived a client",
    "client.unarchived": "Restored a client",
    "client.erased": "Erased a client",
    "client.password_set": "Set the password of a client",
    "client.impersonated": "Acted as a client",
    "company.exported": "Exported the company",
    "import.started": "Started an import",
    "import.undone": "Undid an import",
    "job.cancelled": "Cancelled a job",
    "load_unit.conversion_started": "Started to convert loads",
    "load_unit.converted": "Converted loads",
    "sandbox.created": "Created a sandbox",
    "calendar_link.created": "Created a calendar link",
    "calendar_link.deleted": "Revoked a calendar link",
    "push_subscription.created": "Turned notifications on for a device",
    "push_subscription.deleted": "Turned notifications off for a device",
    "webhook.created": "Created a webhook",
    "webhook.changed": "Changed a webhook",
    "webhook.secret_rotated": "Replaced the secret of a webhook",
    "webhook.deleted": "Deleted a webhook",
    "assistant.allowed": "Connected an assistant",
    "assistant.revoked": "Disconnected an assistant",
    "application.allowed": "Allowed an application",
    "application.revoked": "Ended the access of an application",
    "application.registered": "Registered an application",
    "application.secret_rotated": "Replaced the secret of an application",
    "application.deleted": "Deleted an application",
    "proposal.approved": "Approved a proposal",
    "proposal.rejected": "Rejected a proposal",
}
_INTERFACES = {
    "session": "",
    "apiKey": "API key",
    "assistant": "assistant",
    "application": "application",
    "client": "client",
    "system": "service",
}


# `from` is a keyword of Python, so the type has the functional form.
_Days = TypedDict(
    "_Days",
    {"from": Annotated[str | None, SearchedDate()], "to": Annotated[str | None, SearchedDate()]},
)


class _Filters(_Days):
    """Which entries to show; days are those of the company."""

    customerId: ObjectId | None
    actorId: ObjectId | None
    action: audit.AuditAction | None
    after: Annotated[str | None, Default(None)]


@pages.get(_PATH, access=owner_session(), template="settings/audit_log.html")
async def audit_log_page(ctx: Context, query: _Filters) -> dict[str, Any]:
    """Who did what, and who has read whose data."""
    page = await audit_log.list_entries(ctx, _to_query(ctx, query))
    names = ("action", "actorId", "from", "to", "customerId")
    chosen = {name: str(query.get(name) or "") for name in names}
    client = query.get("customerId")
    named = await customers.find_references(ctx, [client]) if client is not None else {}
    link = list_url(_PATH, chosen)
    return {
        "entries": [_describe(entry) for entry in page["docs"]],
        "query": chosen,
        "is_filtered": any(chosen.values()),
        "client": next(iter(named.values()), None),
        "coaches": await team.list_coaches(ctx),
        "actions": sorted(LABELS.items(), key=lambda each: each[1]),
        "is_first_part": not query.get("after"),
        "first_url": link(),
        "next_url": link(after=page["nextCursor"]) if page["hasMore"] else None,
        "csv_url": list_url(f"{_PATH}/audit-log.csv", chosen)(),
        "days": ctx.services.audit_days,
    }


@pages.get(f"{_PATH}/audit-log.csv", access=owner_session(), template="", request_class="bulk")
async def audit_log_file(ctx: Context, query: _Filters) -> Download:
    """Download the entries that match the filters."""
    return audit_log.to_csv(ctx, _to_query(ctx, query))


def _to_query(ctx: Context, filters: _Filters) -> audit_log.AuditQuery:
    first, last, timezone = filters.get("from"), filters.get("to"), ctx.caller.company.timezone
    return {
        "customerId": filters.get("customerId"),
        "actorId": filters.get("actorId"),
        "action": filters.get("action"),
        "from": midnight(date.fromisoformat(first), timezone) if first else None,
        "to": next_midnight(date.fromisoformat(last), timezone) - timedelta(milliseconds=1) if last else None,
        "limit": _PART,
        "after": filters.get("after"),
    }


def _describe(entry: audit_log.AuditRecord) -> dict[str, Any]:
    action, target = entry["action"], entry["target"]
    is_read = action in ("client.read", "list.read")
    kind = target["kind"].replace("_", " ") if is_read else ""
    return {
        **entry,
        "label": LABELS[action],
        "through": _INTERFACES[entry["via"]],
        "what": " · ".join(filter(None, [kind, "" if target["_id"] == entry["actor"]["_id"] else target["name"]])),
    }


# --- The own sign-ins -------------------------------------------------------------------------------------------------


async def list_sign_ins(ctx: Context) -> Sequence[dict[str, Any]]:
    """Return the last sign-ins of the caller's account, with the device in words."""
    return [
        {**each, "device": describe_device(each.get("device", "")), "failed": each["action"] == "sign_in.failed"}
        for each in await audit.list_sign_ins(ctx)
    ]


def _declare_sign_ins(settings: str, access: Access, template: str, password_page: str) -> None:
    @pages.get(f"{settings}/sign-ins", access=access, template=template)
    async def sign_ins_page(ctx: Context) -> dict[str, Any]:
        """The last sign-ins of the user."""
        return {"sign_ins": await list_sign_ins(ctx)}

    @pages.post(f"{settings}/sign-ins/not-me", access=access, on=sign_ins_page, deletes=True)
    async def report_sign_in(ctx: Context) -> Redirect:
        """End all other sessions of the user, who has not signed in, and lead to another password."""
        await sessions.end_other_sessions(ctx)
        return Redirect(password_page, "All other devices are signed out. Now choose another password.")


_declare_sign_ins("/app/settings", session_only(), "settings/sign_ins.html", "/app/settings/my-account")
_declare_sign_ins("/train/settings", customer(), "train/settings/sign_ins.html", "/train/settings/password")


# --- Who has looked, for the client -----------------------------------------------------------------------------------


@pages.get("/train/settings/access", access=customer(), template="train/settings/access.html")
async def own_access_page(ctx: Context) -> dict[str, Any]:
    """Who has looked at or changed the client's data, by day, and what else than people may."""
    profile = await own_profile.get(ctx)
    return {
        "consent": profile["consent"],
        "days": group_by_day(await audit_log.list_access(ctx, ctx.caller.id)),
        "kept": ctx.services.audit_days,
    }


class _Switches(TypedDict):
    assistants: Annotated[bool, Default(False)]
    applications: Annotated[bool, Default(False)]


@pages.post("/train/settings/access", access=customer(), on=own_access_page, idempotent=True)
async def change_own_consent(ctx: Context, form: _Switches) -> Redirect:
    """Allow, or no longer allow, assistants and applications."""
    await own_profile.update(ctx, {"consent": {**form}})
    return Redirect("/train/settings/access", "Changes saved.")


def group_by_day(entries: Sequence[audit_log.ClientAccess], most: int = 60) -> list[dict[str, Any]]:
    """Return the latest days on which someone has looked at or changed the data of a client, with what they did."""
    days: dict[str, list[dict[str, Any]]] = {}
    for each in entries:
        role = {"assistant": "assistant", "application": "application", "key": "by API key"}.get(each["actor"]["type"])
        days.setdefault(each["date"], []).append({**each, "name": each["actor"]["name"], "role": role})
    return [{"date": day, "who": who} for day, who in list(days.items())[:most]]
