"""Settings: API keys."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import ACTIONS, AREAS, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import local_date, next_midnight
from coaching_service.core.errors import invalid_field, require_by_id
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.api_keys.models import ApiKey, ApiKeyRestrictions
from coaching_service.people.team import service as team
from coaching_service.people.team.models import Permissions
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect, Render

pages = Pages("/app/settings/api-keys")
_ONE_MILLISECOND = timedelta(milliseconds=1)


class _NewKey(TypedDict):
    name: str
    readOnly: Annotated[bool, Default(False)]
    permissions: Annotated[list[str], Permissions(), Default(list)]
    expires: Annotated[str | None, Date()]
    outreach: Annotated[bool, Default(False)]
    confirmInChat: Annotated[bool, Default(False)]
    mcpOnly: Annotated[bool, Default(False)]


class _KeysQuery(TypedDict):
    """Whether the key to create is for an assistant."""

    forAssistant: Annotated[bool, Default(False)]


@pages.get("", access=session_only(), template="settings/api_keys.html")
async def api_keys_page(ctx: Context, query: _KeysQuery) -> dict[str, Any]:
    """The coach's API keys; for the owner, all of the company."""
    keys, coaches = await gather_reads(ctx, api_keys.list_keys(ctx), team.list_coaches(ctx))
    timezone = ctx.caller.company.timezone
    expiry_times = {key["_id"]: key["restrictions"]["expiresAt"] for key in keys}
    last_days = {
        key_id: time and local_date(time - _ONE_MILLISECOND, timezone) for key_id, time in expiry_times.items()
    }
    return {
        "keys": [{**key, "lastDay": last_days[key["_id"]]} for key in keys],
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "areas": [area.name for area in AREAS],
        "actions": ACTIONS,
        "now": now(),
        "today": ctx.caller.today(),
        "revealed_key": None,
        "query": query,
    }


@pages.post("", access=session_only(), on=api_keys_page)
async def create_api_key(ctx: Context, form: _NewKey) -> Render:
    """Create a key and show its secret."""
    if not set(form["permissions"]) <= ctx.caller.permissions:
        raise invalid_field("permissions", "must be among your own", code="PERMISSION_NOT_HELD")
    restrictions: ApiKeyRestrictions = {
        "readOnly": form["readOnly"],
        "permissions": form["permissions"] or None,
        "expiresAt": _end_of_day(ctx, form["expires"]) if form["expires"] else None,
        "outreach": form["outreach"],
        "confirmInChat": form["confirmInChat"],
        "mcpOnly": form["mcpOnly"],
    }
    key = await api_keys.create(ctx, form["name"], restrictions)
    repeat_notice = f"{key['name']} has already been created. Select Show to see its secret."
    return Render({"revealed_key": {"name": key["name"], "secret": key["key"], "isNew": True}}, repeat_notice)


@pages.post("/{keyId}/reveal", access=session_only(), on=api_keys_page)
async def reveal_api_key(ctx: Context, key_id: ObjectId) -> Render:
    """Show a key's secret again, which is recorded in the audit log."""
    key = await _get_key(ctx, key_id)
    revealed_key = {"name": key["name"], "secret": await api_keys.reveal(ctx, key_id), "isNew": False}
    return Render({"revealed_key": revealed_key}, "Select Show to see the secret again.")


@pages.confirm("/{keyId}/delete", access=session_only(), template="settings/delete_api_key.html", deletes=True)
async def delete_api_key(ctx: Context, key_id: ObjectId) -> ConfirmedAction:
    """Delete a key: its next request is rejected."""
    key = await _get_key(ctx, key_id)
    done = Redirect(pages.prefix, f"{key['name']} deleted. Requests with it are rejected from now on.")
    return ConfirmedAction({"key": key}, partial(api_keys.revoke, ctx, key_id), done)


def _end_of_day(ctx: Context, day: str) -> datetime:
    """Return the last millisecond of a day in the company's time zone.

    Raises InvalidFields for a day in the past.
    """
    last_day = date.fromisoformat(day)
    if last_day < ctx.caller.today():
        raise invalid_field("expires", "must not be in the past", code="IN_THE_PAST")
    return next_midnight(last_day, ctx.caller.company.timezone) - _ONE_MILLISECOND


async def _get_key(ctx: Context, key_id: ObjectId) -> ApiKey:
    return require_by_id(await api_keys.list_keys(ctx), key_id, "API key")
