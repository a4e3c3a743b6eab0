"""Settings of a client: profile, language, units and time zone, password, the client's data, and devices."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Forbidden, invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import patch_of
from coaching_service.lifecycle import export as own_export
from coaching_service.people import own_profile
from coaching_service.people.customers.models import OwnDetails, OwnRecord
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions import web_sessions
from coaching_service.people.sessions.models import PasswordChange
from coaching_service.web.formatting import describe_device
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/train/settings")
_PATH = "/train/settings"
_PROFILE, _PREFERENCES = (f"{_PATH}/profile", f"{_PATH}/preferences")
_DETAILS = patch_of(input_of(OwnRecord), name="OwnDetailsForm")
_PROFILE_FORM = type(_DETAILS)(only=("phone", "birthday", "version"))
_PREFERENCES_FORM = type(_DETAILS)(only=("timezone", "language", "loadUnit", "version"))
_LANGUAGES = (
    ("cs", "Čeština"),
    ("da", "Dansk"),
    ("de", "Deutsch"),
    ("en", "English"),
    ("es", "Español"),
    ("fr", "Français"),
    ("it", "Italiano"),
    ("nl", "Nederlands"),
    ("nb", "Norsk bokmål"),
    ("pl", "Polski"),
    ("pt", "Português"),
    ("pt-BR", "Português (Brasil)"),
    ("fi", "Suomi"),
    ("sv", "Svenska"),
    ("tr", "Türkçe"),
    ("el", "Ελληνικά"),
    ("uk", "Українська"),
    ("he", "עברית"),
    ("ar", "العربية"),
    ("zh", "中文"),
    ("ja", "日本語"),
    ("ko", "한국어"),
)


@pages.get("", access=customer(), template="train/settings/index.html")
async def own_settings_page(_: Context) -> dict[str, Any]:
    """The parts of the settings, and signing out."""
    return {}


# --- Profile ---------------------------------------------------------------------------------------------------------


@pages.get("/profile", access=customer(), template="train/settings/profile.html")
async def own_profile_page(ctx: Context) -> dict[str, Any]:
    """Name and e-mail address, which the coach changes; phone, birthday and photo."""
    profile = await own_profile.get(ctx)
    return {"profile": profile, "version": profile["version"]}


@pages.post("/profile", access=customer(), form=_PROFILE_FORM, on=own_profile_page)
async def change_own_profile(ctx: Context, form: OwnDetails) -> Redirect:
    """Change phone and birthday."""
    await own_profile.update(ctx, form)
    return Redirect(_PROFILE, "Changes saved.")


@pages.get("/profile/picture", access=customer(), template="")
async def own_picture(ctx: Context) -> Download:
    """The profile photo; browsers do not keep it."""
    return await own_profile.get_profile_photo(ctx)


@pages.post(
    "/profile/photo",
    access=customer(),
    form=MultipartBody("profilePhotoFile", IMAGE_TYPES),
    on=own_profile_page,
)
async def set_own_photo(ctx: Context, file: StoredFile) -> Redirect:
    """Set or replace the profile photo."""
    await own_profile.set_profile_photo(ctx, file)
    return Redirect(_PROFILE, "Photo saved.")


# --- Language, units and time zone -----------------------------------------------------------------------------------


@pages.get("/preferences", access=customer(), template="train/settings/preferences.html")
async def own_preferences_page(ctx: Context) -> dict[str, Any]:
    """Language, units and time zone."""
    profile = await own_profile.get(ctx)
    language = profile["language"]
    languages = [("", "No preference"), *_LANGUAGES]
    if language and language not in dict(_LANGUAGES):
        languages.append((language, language))
    return {"profile": profile, "languages": languages, "version": profile["version"]}


@pages.post("/preferences", access=customer(), form=_PREFERENCES_FORM, on=own_preferences_page)
async def change_own_preferences(ctx: Context, form: OwnDetails) -> Redirect:
    """Change language, units and time zone."""
    await own_profile.update(ctx, form)
    return Redirect(_PREFERENCES, "Changes saved.")


# --- Password --------------------------------------------------------------------------------------------------------


@pages.get("/password", access=customer(), template="train/settings/password.html")
async def own_password_page(_: Context) -> dict[str, Any]:
    """The form to change the password."""
    return {}


@pages.post("/password", access=customer(), on=own_password_page, request_class="unlimited")
async def change_own_password(ctx: Context, form: PasswordChange) -> Redirect:
    """Change the password, confirmed with the current one; every other session ends."""
    try:
        new_password = await own_profile.change_password(ctx, form["currentPassword"], form["password"])
    except Forbidden:
        raise invalid_field("currentPassword", "is not your password", code="WRONG_PASSWORD") from None
    notice = "Password changed. You are signed out on all other devices."
    return Redirect(_PATH, notice, device_token=new_password["deviceToken"])


# --- The client's data -----------------------------------------------------------------------------------------------


@pages.get("/data", access=customer(), template="train/settings/data.html")
async def own_data_page(ctx: Context) -> dict[str, Any]:
    """The download of the client's data, and the request for erasure."""
    return {"erasure_requested_at": await own_profile.find_erasure_request(ctx)}


@pages.get("/data/my-training.zip", access=customer(), template="", request_class="bulk")
async def export_own_data(ctx: Context) -> Download:
    """Download everything the client may read."""
    return await own_export.export_own(ctx)


@pages.get("/data/erasure", access=customer(), template="train/settings/erasure.html")
async def own_erasure_page(ctx: Context) -> dict[str, Any] | Redirect:
    """What erasure means, and the confirmation; without effect once it was asked for."""
    if await own_profile.find_erasure_request(ctx) is not None:
        return Redirect(f"{_PATH}/data")
    return {}


@pages.post("/data/erasure", access=customer(), on=own_erasure_page)
async def request_own_erasure(ctx: Context) -> Redirect:
    """Ask the coaches for the erasure of the client's data."""
    await own_profile.request_erasure(ctx)
    return Redirect(f"{_PATH}/data", "Your coach has been asked to delete your data.")


# --- Devices ---------------------------------------------------------------------------------------------------------


@pages.get("/devices", access=customer(), template="train/settings/devices.html")
async def own_devices_page(ctx: Context) -> dict[str, Any]:
    """The signed-in devices, this one first, with forms to sign out the others."""
    own = await web_sessions.list_own(ctx)
    return {"sessions": [{**session, "device": describe_device(session["device"])} for session in own]}


@pages.post("/devices/{sessionId}/end", access=customer(), on=own_devices_page, deletes=True)
async def end_own_session(ctx: Context, session_id: ObjectId) -> Redirect:
    """Sign one device out."""
    await web_sessions.end_own(ctx, session_id)
    return Redirect(f"{_PATH}/devices", "The device is signed out.")


@pages.post("/devices/end-others", access=customer(), on=own_devices_page, idempotent=True, deletes=True)
async def end_other_sessions(ctx: Context) -> Redirect:
    """Sign all other devices out."""
    await sessions.end_other_sessions(ctx)
    return Redirect(f"{_PATH}/devices", "All other devices are signed out.")
