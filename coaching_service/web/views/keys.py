"""Settings: the API keys."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from coaching_service.kernel.auth.access import session_only
from coaching_service.kernel.auth.permissions import ACTIONS, AREAS
from coaching_service.kernel.errors import not_found
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document, now
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import Choice, Day, Flag, Input, Text
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.team import service as team
from coaching_service.people.team.schemas import Permissions
from coaching_service.web.pages import Go, Pages, Show

pages = Pages("/app/settings/api-keys")


class _NewKey(Input):
    name = Text(required=True)
    readOnly = Flag(load_default=False)
    reach = Choice("all", "some", load_default="all")
    permissions = Permissions(load_default=list)
    expires = Day(allow_none=True, load_default=None)


@pages.get("", access=session_only(), template="settings/keys.html")
async def keys_page(ctx: Context) -> dict[str, Any]:
    """The keys of the coach; for the owner, all of the company's."""
    keys, coaches = await together(ctx, api_keys.everything(ctx), team.everybody(ctx))
    return {
        "keys": keys,
        "names": {each["_id"]: each["name"] for each in coaches},
        "areas": [area.name for area in AREAS],
        "actions": ACTIONS,
        "now": now(),
        "shown": None,
    }


@pages.post("", access=session_only(), form=_NewKey(), on=keys_page)
async def create_key(ctx: Context, form: dict[str, Any]) -> Show:
    """A new key; its secret is shown at once."""
    ends = datetime.combine(datetime.fromisoformat(form["expires"]), time.max) if form["expires"] else None
    restrictions = {
        "readOnly": form["readOnly"],
        "permissions": form["permissions"] if form["reach"] == "some" else None,
        "expiresAt": ends and ends.replace(microsecond=0),
    }
    key = await api_keys.create(ctx, form["name"], restrictions)
    return Show({"shown": {"name": key["name"], "key": key["key"], "fresh": True}})


@pages.post("/{keyId}/reveal", access=session_only(), on=keys_page)
async def reveal_key(ctx: Context, key_id: ObjectId) -> Show:
    """Show a key's secret again; that it was read is recorded."""
    key = await _one(ctx, key_id)
    return Show({"shown": {"name": key["name"], "key": await api_keys.reveal(ctx, key_id), "fresh": False}})


@pages.get("/{keyId}/delete", access=session_only(), template="settings/delete_key.html")
async def delete_key_page(ctx: Context, key_id: ObjectId) -> dict[str, Any]:
    """What stops with a key."""
    return {"key": await _one(ctx, key_id)}


@pages.post("/{keyId}/delete", access=session_only(), on=delete_key_page)
async def delete_key(ctx: Context, key_id: ObjectId) -> Go:
    """Delete a key: it fails on its next request."""
    key = await _one(ctx, key_id)
    await api_keys.revoke(ctx, key_id)
    return Go("/app/settings/api-keys", f"{key['name']} is deleted. It is refused from now on.")


async def _one(ctx: Context, key_id: ObjectId) -> Document:
    key = next((key for key in await api_keys.everything(ctx) if key["_id"] == key_id), None)
    if key is None:
        raise not_found("API key")
    return key
