"""Settings: the API keys."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.auth.permissions import ACTIONS, AREAS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import local_date, next_midnight
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Boolean, Date, Input, Text
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.api_keys.models import ApiKey, NewRestrictions
from coaching_service.people.team import service as team
from coaching_service.people.team.schemas import Permissions
from coaching_service.web.pages import Pages, Redirect, Render

pages = Pages("/app/settings/api-keys")
_A_MOMENT = timedelta(milliseconds=1)
_LAST_YEAR = 2999


class _NewKey(Input):
    name = Text(required=True)
    readOnly = Boolean(load_default=False)
    permissions = Permissions(load_default=list)
    expires = Date(allow_none=True, load_default=None)


@pages.get("", access=session_only(), template="settings/api_keys.html")
async def keys_page(ctx: Context) -> dict[str, Any]:
    """The keys of the coach; for the owner, all of the company's."""
    keys, coaches = await gather_reads(ctx, api_keys.list_keys(ctx), team.list_coaches(ctx))
    timezone = ctx.caller.company.timezone
    ends = {key["_id"]: key["restrictions"]["expiresAt"] for key in keys}
    last_days = {key_id: end and local_date(end - _A_MOMENT, timezone) for key_id, end in ends.items()}
    return {
        "keys": [{**key, "lastDay": last_days[key["_id"]]} for key in keys],
        "names": {each["_id"]: each["name"] for each in coaches},
        "areas": [area.name for area in AREAS],
        "actions": ACTIONS,
        "now": now(),
        "today": ctx.caller.today(),
        "shown": None,
    }


@pages.post("", access=session_only(), form=_NewKey(), on=keys_page)
async def create_key(ctx: Context, form: dict[str, Any]) -> Render:
    """A new key; its secret is shown at once."""
    if not set(form["permissions"]) <= ctx.caller.permissions:
        raise BadRequest(["permissions must be among your own"])
    restrictions: NewRestrictions = {
        "readOnly": form["readOnly"],
        "permissions": form["permissions"] or None,
        "expiresAt": _end_of(ctx, form["expires"]) if form["expires"] else None,
    }
    key = await api_keys.create(ctx, form["name"], restrictions)
    again = f"{key['name']} is made already. Show, beside it, shows its secret."
    return Render({"shown": {"name": key["name"], "key": key["key"], "fresh": True}}, again)


@pages.post("/{keyId}/reveal", access=session_only(), on=keys_page)
async def reveal_key(ctx: Context, key_id: ObjectId) -> Render:
    """Show a key's secret again; that it was read is recorded."""
    key = await _one(ctx, key_id)
    shown = {"name": key["name"], "key": await api_keys.reveal(ctx, key_id), "fresh": False}
    return Render({"shown": shown}, "To see a key once more, press Show beside it.")


@pages.get("/{keyId}/delete", access=session_only(), template="settings/delete_api_key.html")
async def delete_key_page(ctx: Context, key_id: ObjectId) -> dict[str, Any]:
    """What stops with a key."""
    return {"key": await _one(ctx, key_id)}


@pages.post("/{keyId}/delete", access=session_only(), on=delete_key_page)
async def delete_key(ctx: Context, key_id: ObjectId) -> Redirect:
    """Delete a key: it fails on its next request."""
    key = await _one(ctx, key_id)
    await api_keys.revoke(ctx, key_id)
    return Redirect("/app/settings/api-keys", f"{key['name']} is deleted. It is refused from now on.")


def _end_of(ctx: Context, day: str) -> datetime:
    """The last moment of a day where the company is. Raises BadRequest for one that is over, or too far away."""
    last = date.fromisoformat(day)
    if last < ctx.caller.today():
        raise BadRequest(["expires must not be in the past"])
    if last.year > _LAST_YEAR:
        raise BadRequest([f"expires must not be after {_LAST_YEAR}"])
    return next_midnight(last, ctx.caller.company.timezone) - _A_MOMENT


async def _one(ctx: Context, key_id: ObjectId) -> ApiKey:
    key = next((key for key in await api_keys.list_keys(ctx) if key["_id"] == key_id), None)
    if key is None:
        raise NotFound("API key")
    return key
