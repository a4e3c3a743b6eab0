"""The devices on which a client is signed in."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions import web_sessions
from coaching_service.web.device_names import describe_device
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/train/settings/devices")
_PATH = "/train/settings/devices"


@pages.get("", access=customer(), template="train/settings/devices.html")
async def own_devices_page(ctx: Context) -> dict[str, Any]:
    """The signed-in devices, this one first, with forms to sign out the others."""
    own = await web_sessions.list_own(ctx)
    return {"sessions": [{**session, "device": describe_device(session["device"])} for session in own]}


@pages.post("/{sessionId}/end", access=customer(), on=own_devices_page)
async def end_own_session(ctx: Context, session_id: ObjectId) -> Redirect:
    """Sign one device out."""
    await web_sessions.end_own(ctx, session_id)
    return Redirect(_PATH, "The device is signed out.")


@pages.post("/end-others", access=customer(), on=own_devices_page, idempotent=True)
async def end_other_sessions(ctx: Context) -> Redirect:
    """Sign all other devices out."""
    await sessions.end_other_sessions(ctx)
    return Redirect(_PATH, "All other devices are signed out.")
