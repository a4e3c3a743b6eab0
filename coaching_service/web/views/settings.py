"""Settings: the company, team, API keys, webhooks and notifications, and the accounts of coaches and of clients."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict, cast

from marshmallow import Schema

from coaching_service.core import auth
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import now
from coaching_service.core.dates import local_date, next_midnight
from coaching_service.core.errors import Forbidden, invalid_field, require_by_id
from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.fields import Default, input_of, query_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import Date, Version, patch_of
from coaching_service.integrations import load_unit
from coaching_service.lifecycle import export as own_export
from coaching_service.people import account, api_keys, jobs, notifications, own_profile, push, second_factor, team
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import OwnRecord
from coaching_service.people.notification_settings import SETTINGS_INPUT, NotificationSettings, SomeSettings
from coaching_service.people.push import NewPushSubscription
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.models import PasswordChange
from coaching_service.people.webhooks import service as webhooks
from coaching_service.people.webhooks.models import DeliveryQuery, NewWebhook, WebhookFields
from coaching_service.web.pages import Pages, Records, Redirect, Render, list_url
from coaching_service.web.views.sign_in import describe_api_keys

pages = Pages("")

_settings = pages.below("/app/settings")

_UNIT_NAMES = {"kg": "kilograms", "lb": "pounds"}


@_settings.get("", access=auth.coach(), template="")
async def settings_page(_: Context) -> Redirect:
    """Redirect to the first settings page, which every coach can see."""
    return Redirect("/app/settings/company")


@_settings.get("/company", access=auth.coach(), template="settings/company.html")
async def company_page(ctx: Context) -> dict[str, Any]:
    """The company's name, time zone and load unit."""
    company = await account.get_account(ctx)
    return {"company": company, "version": company["version"]}


_COMPANY_FORM = patch_of(input_of(account.AccountDetails), name="CompanyForm")
_act_as_owner = partial(_settings.act, access=auth.owner_session())
_act_as_owner(
    "/company", "update_company", account.update_account, "Changes saved.", on=company_page, form=_COMPANY_FORM
)


@_settings.get("/storage", access=auth.owner_session(), template="settings/storage.html")
async def storage_page(ctx: Context) -> dict[str, Any]:
    """The number and the size of the company's files, and how much it may store."""
    return {"usage": (await files.read_usage(ctx.services, [ctx.company_id]))[ctx.company_id]}


@_settings.get("/delete-account", access=auth.owner_session(), template="settings/delete_account.html")
async def delete_account_page(ctx: Context) -> dict[str, Any]:
    """Confirmation of deleting the company."""
    active = await customers.list_customers(ctx, archived=False, page=1, size=1)
    archived = await customers.list_customers(ctx, archived=True, page=1, size=1)
    return {"client_count": active["totalDocs"] + archived["totalDocs"]}


@_settings.post(
    "/delete-account", access=auth.owner_session(), on=delete_account_page, request_class="unlimited", deletes=True
)
async def delete_account(ctx: Context, form: account.AccountErasure) -> Redirect:
    """Delete the company; its owner confirms with their password."""
    try:
        await account.delete_account(ctx, {"password": form["password"]})
    except Forbidden:
        raise invalid_field("password", "is not your password", code="WRONG_PASSWORD") from None
    return Redirect("/app/sign-in", "Your company is deleted. Its data is being erased.", ends_session=True)


@_settings.get("/my-account", access=auth.session_only(), template="settings/my_account.html")
async def my_account_page(ctx: Context) -> dict[str, Any]:
    """The signed-in coach, and how many API keys the coach has."""
    return {"api_keys": await api_keys.count_own(ctx)}


@_settings.post("/my-account", access=auth.session_only(), on=my_account_page, request_class="unlimited")
async def change_password(ctx: Context, form: PasswordChange) -> Redirect:
    """Change the password, confirmed with the current one."""
    try:
        new_password = await credentials.change_password(
            ctx, form["currentPassword"], form["password"], form["deleteApiKeys"]
        )
    except Forbidden:
        raise invalid_field("currentPassword", "is not your password", code="WRONG_PASSWORD") from None
    notice = f"Password changed. You are signed out on all other devices.{describe_api_keys(new_password)}"
    return Redirect("/app/settings/my-account", notice, device_token=new_password["deviceToken"])


@_settings.get(
    "/load-unit", access=auth.even_while_converting(auth.owner_session()), template="settings/load_unit.html"
)
async def load_unit_page(ctx: Context) -> dict[str, Any]:
    """The unit of loads, the other one that loads can be converted to, and the latest conversion or count."""
    unit = (await account.get_account(ctx))["loadUnit"]
    other = next(each for each in _UNIT_NAMES if each != unit)
    job = next(iter(await jobs.list_latest(ctx, "load_unit", 1)), None)
    work = job["work"] if job else {}
    is_done = job is not None and job["status"] == "done"
    return {
        "names": _UNIT_NAMES,
        "unit": unit,
        "other": other,
        "job": job,
        "work": work,
        "is_running": job is not None and jobs.is_unfinished(job),
        "was_counted": is_done and work["isDryRun"] and work["loadUnit"] == other,
    }


_act_on_loads = partial(_act_as_owner, on=load_unit_page, form=load_unit.LoadUnitConversion, fields=("loadUnit",))
_count, _convert = (partial(load_unit.begin, dry_run=dry_run) for dry_run in (True, False))
_act_on_loads("/load-unit/count", "count_loads", _count, "Counting has begun.")
_act_on_loads("/load-unit", "convert_loads", _convert, "The conversion has begun.")


# --- Settings: the team and the permissions of its employees ----------------------------------------------------------


_team = Records(pages, "/app/settings/team", "employeeId", "employee", auth.owner_session(), team.get_employee)
_PERMISSION_GRID = {"areas": [area.name for area in auth.AREAS], "actions": auth.ACTIONS}
_DEFAULT_PERMISSIONS = (
    "customers.view",
    "customers.create",
    "customers.edit",
    "exercises.view",
    "programs.view",
    "forms.view",
    "metrics.view",
    "metrics.edit",
    "nutrition.view",
)


class _EmployeeForm(team.CoachName):
    permissions: Annotated[list[str], team.Permissions(), Default(list)]
    customersScope: team.CustomersScope
    version: NotRequired[Annotated[int, Version()]]


@_team.get("", access=auth.owner_session(), template="settings/team.html")
async def team_page(ctx: Context) -> dict[str, Any]:
    """The owner and the employees."""
    coaches, holders = await gather_reads(ctx, team.list_coaches(ctx), second_factor.list_holders(ctx))
    return {"coaches": coaches, "holders": holders, **_PERMISSION_GRID}


@_team.get("/new", access=auth.owner_session(), template="settings/employee.html")
async def new_employee_page(_: Context) -> dict[str, Any]:
    """The form for a new employee."""
    return {"employee": None, "default_permissions": _DEFAULT_PERMISSIONS, **_PERMISSION_GRID}


@_team.create("/new", on=new_employee_page)
async def create_employee(ctx: Context, form: team.NewEmployee) -> Redirect:
    """Add an employee, who receives an e-mail to set a password."""
    await team.create(ctx, form["name"], form["email"], form["permissions"], form["customersScope"])
    return Redirect("/app/settings/team", f"{form['name']} added. We sent an email with a link to set a password.")


_employee_page = _team.page(lambda _: _PERMISSION_GRID)


_change = partial(_team.each.act, access=auth.owner_session(), on=_employee_page, to=_team.prefix)
_change("", "update_employee", team.update_employee, "Changes to {form[name]} saved.", form=_EmployeeForm)


async def _count_clients(ctx: Context, employee_id: ObjectId) -> dict[str, int]:
    assigned = await customers.list_customers(ctx, archived=False, page=1, size=1, trainers=[employee_id])
    return {"client_count": assigned["totalDocs"]}


@_team.each.confirm(
    "/reset-second-factor",
    credentials.reset_of_employee,
    "{employee[name]} can sign in with the password alone.",
    to=_team.prefix,
    access=auth.owner_session(),
    template="settings/reset_second_factor.html",
)
async def reset_second_factor(ctx: Context, employee_id: ObjectId) -> dict[str, Any]:
    """Remove the second factor of an employee who has lost it."""
    return {"employee": await team.get_employee(ctx, employee_id)}


_team.delete(team.delete_employee, variables=_count_clients, done="{name} removed.")


# --- Settings: API keys -----------------------------------------------------------------------------------------------


_ONE_MILLISECOND = timedelta(milliseconds=1)


class _NewKey(TypedDict):
    name: str
    actsAsCompany: Annotated[bool, Default(False)]
    readOnly: Annotated[bool, Default(False)]
    permissions: Annotated[list[str], team.Permissions(), Default(list)]
    expires: Annotated[str | None, Date()]
    outreach: Annotated[bool, Default(False)]
    confirmInChat: Annotated[bool, Default(False)]
    mcpOnly: Annotated[bool, Default(False)]


class _KeysQuery(TypedDict):
    """Whether the key to create is for an assistant."""

    forAssistant: Annotated[bool, Default(False)]


async def _get_key(ctx: Context, key_id: ObjectId) -> api_keys.ApiKey:
    return require_by_id(await api_keys.list_api_keys(ctx), key_id, "API key")


_api_keys = Records(pages, "/app/settings/api-keys", "keyId", "api_key", auth.session_only(), _get_key, shown_as="key")
_api_keys.delete(
    api_keys.delete_api_key, done="{name} deleted. Requests with it are rejected from now on.", from_list=True
)


@_api_keys.list
async def api_keys_page(ctx: Context, query: _KeysQuery) -> dict[str, Any]:
    """The coach's API keys; for the owner, all of the company."""
    keys, coaches = await gather_reads(ctx, api_keys.list_api_keys(ctx), team.list_coaches(ctx))
    timezone = ctx.caller.company.timezone
    return {
        "keys": [
            {**key, "lastDay": end and local_date(end - _ONE_MILLISECOND, timezone)}
            for key in keys
            for end in [key["restrictions"]["expiresAt"]]
        ],
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "areas": [area.name for area in auth.AREAS],
        "actions": auth.ACTIONS,
        "now": now(),
        "revealed_key": None,
        "query": query,
    }


@_api_keys.create()
async def create_api_key(ctx: Context, form: _NewKey) -> Render:
    """Create a key and show its secret."""
    if not set(form["permissions"]) <= ctx.caller.permissions:
        raise invalid_field("permissions", "must be among your own", code="PERMISSION_NOT_HELD")
    last_day, timezone = date.fromisoformat(form["expires"]) if form["expires"] else None, ctx.caller.company.timezone
    if last_day is not None and last_day < ctx.caller.today():
        raise invalid_field("expires", "must not be in the past", code="IN_THE_PAST")
    restrictions: api_keys.ApiKeyRestrictions = {
        "readOnly": form["readOnly"],
        "permissions": None if form["actsAsCompany"] else form["permissions"] or None,
        "expiresAt": next_midnight(last_day, timezone) - _ONE_MILLISECOND if last_day else None,
        "outreach": form["outreach"],
        "confirmInChat": form["confirmInChat"],
        "mcpOnly": form["mcpOnly"],
    }
    held = form["permissions"] or sorted(auth.ALL_PERMISSIONS)
    of_company: dict[str, Any] = {"acts_as": "company", "permissions": held} if form["actsAsCompany"] else {}
    key = await api_keys.create(ctx, form["name"], restrictions, **of_company)
    repeat_notice = f"{key['name']} has already been created. Select Show to see its secret."
    return Render({"revealed_key": _revealed(key, key["key"], is_new=True)}, repeat_notice)


@_api_keys.post("/{keyId}/reveal", access=auth.session_only(), on=api_keys_page)
async def reveal_api_key(ctx: Context, key_id: ObjectId) -> Render:
    """Show a key's secret again, which is recorded in the audit log."""
    key = await _get_key(ctx, key_id)
    revealed_key = _revealed(key, await api_keys.reveal(ctx, key_id), is_new=False)
    return Render({"revealed_key": revealed_key}, "Select Show to see the secret again.")


def _revealed(key: api_keys.ApiKey, secret: str, *, is_new: bool) -> dict[str, Any]:
    return {"name": key["name"], "secret": secret, "isNew": is_new, "isOfCompany": key["actsAs"] == "company"}


# --- Settings: webhooks and their deliveries --------------------------------------------------------------------------


_webhooks = Records(
    pages, "/app/settings/webhooks", "webhookId", "webhook", auth.coach(auth.WEBHOOKS), webhooks.get_webhook
)
_PAGE_SIZE = 20
_STATUSES = (("", "All"), ("succeeded", "Succeeded"), ("pending", "Pending"), ("failed", "Failed"))
# Why an attempt had no response, in words.
_REASONS = {
    "ADDRESS_NOT_ALLOWED": "The address is not public",
    "PORT_NOT_ALLOWED": "The port is not allowed",
    "URL_INVALID": "The address is not valid",
    "CONNECTION_FAILED": "No trusted connection",
    "TIMED_OUT": "No response in 15 seconds",
    "RESPONSE_INVALID": "Invalid response",
    "SECRET_UNREADABLE": "The secret cannot be read",
}


class _WebhookForm(WebhookFields):
    version: NotRequired[Annotated[int, Version()]]


@_webhooks.list
async def webhooks_page(ctx: Context) -> dict[str, Any]:
    """The webhooks of the company, with a form to create one."""
    listed = await webhooks.list_webhooks(ctx)
    return {
        "webhooks": listed,
        "event_types": EVENT_TYPES,
        "is_full": len(listed) >= webhooks.MAX_WEBHOOKS,
        "max_webhooks": webhooks.MAX_WEBHOOKS,
        "created": None,
    }


@_webhooks.create(form=input_of(NewWebhook)(exclude=("isActive", "allCompanies")))
async def create_webhook(ctx: Context, form: NewWebhook) -> Render:
    """Create a webhook and show its secret."""
    created = await webhooks.create_webhook(ctx, {**form, "isActive": True, "allCompanies": False})
    repeat_notice = "The webhook has already been created. Its secret is not shown again; you can rotate it."
    return Render({"created": created}, repeat_notice)


@_webhooks.each.get(
    "", access=auth.coach(auth.WEBHOOKS), query=query_of(DeliveryQuery)(), template="settings/webhook.html"
)
async def webhook_page(ctx: Context, webhook_id: ObjectId, query: DeliveryQuery) -> dict[str, Any]:
    """A webhook and its deliveries."""
    webhook, page = await gather_reads(
        ctx,
        webhooks.get_webhook(ctx, webhook_id),
        webhooks.list_webhook_deliveries(
            ctx, webhook_id, {"limit": _PAGE_SIZE, "after": query.get("after"), "status": query.get("status")}
        ),
    )
    here = _webhooks.path(webhook_id)
    status = query.get("status")
    return {
        "webhook": webhook,
        "version": webhook["version"],
        "event_types": EVENT_TYPES,
        "page": page,
        "reasons": _REASONS,
        "statuses": _STATUSES,
        "status": status,
        "is_first_part": not query.get("after"),
        "next_url": list_url(here, {"status": status, "after": page["nextCursor"]})() if page["hasMore"] else None,
        "new_secret": None,
        "now": now(),
    }


_webhooks.change(_WebhookForm, webhooks.update_webhook, on=webhook_page)
_webhooks.delete(webhooks.delete_webhook, done="Webhook deleted. Nothing is sent to it any more.")


_reload = "Reload the page to see the result."
_act = partial(_webhooks.each.act, access=auth.coach(auth.WEBHOOKS), on=webhook_page)
_act(
    "/test",
    "send_webhook_test",
    partial(webhooks.send_webhook_test, body={}),
    f"The test event is being sent. {_reload}",
)
_again = f"The event is being sent again. {_reload}"
_act("/deliveries/{deliveryId}/redeliver", "redeliver_webhook_event", webhooks.redeliver_webhook_event, _again)


@_webhooks.each.post("/rotate-secret", access=auth.coach(auth.WEBHOOKS), on=webhook_page)
async def rotate_webhook_secret(ctx: Context, webhook_id: ObjectId) -> Render:
    """Replace the secret and show the new one."""
    rotated = await webhooks.rotate_webhook_secret(ctx, webhook_id)
    return Render({"new_secret": rotated["secret"]}, "The secret has already been rotated. It is not shown again.")


# --- The settings of notifications and the devices that show them, as the pages of coaches and clients have them ------


_COMMON = ("messages", "showDetails", "quietFrom", "quietTo")
_CLIENT_FORM = SETTINGS_INPUT(only=(*_COMMON, "reminders", "workouts", "checkIns", "workoutTime"))
_COACH_FORM = SETTINGS_INPUT(only=(*_COMMON, "digest", "proposals", "digestHour"))


class _Kind(NamedTuple):
    """A kind of notification in words, and when it comes."""

    name: str
    label: str
    hint: str


_CLIENT_KINDS = (
    _Kind("messages", "Messages", "When your coach has written."),
    _Kind("workouts", "Workout of the day", "At the time below, if you have one."),
    _Kind("reminders", "Reminders in your plan", "At their time."),
    _Kind("checkIns", "Check-ins", "On the day they are due."),
)
_COACH_KINDS = (
    _Kind("messages", "Messages", "When a client has written. By email unless the company has turned it off."),
    _Kind("digest", "Who needs attention", "On weekdays, at the hour below."),
    _Kind("proposals", "Proposals", "When an assistant proposes something to you."),
)


def _declare(of: Pages, access: auth.Access, templates: str, kinds: tuple[_Kind, ...], schema: Schema) -> None:
    """Declare the pages of the settings of the caller, whose templates are in the folder `templates`."""

    @of.get("", access=access, template=f"{templates}/notifications.html")
    async def notifications_page(ctx: Context) -> dict[str, Any]:
        """Which notifications the caller gets, when, and on which devices."""
        devices = await push.list_own_devices(ctx)
        return {
            "kinds": kinds,
            "settings": (await own_profile.get_me(ctx))["notifications"],
            "devices": devices,
            "has_device": any(each["isCurrent"] for each in devices),
            "push_key": (await push.get_push_public_key(ctx))["key"],
        }

    @of.post("", access=access, form=schema, on=notifications_page, idempotent=True)
    async def change_notifications(ctx: Context, form: SomeSettings) -> Redirect:
        """Change which notifications the caller gets."""
        await own_profile.update_me(ctx, {"notifications": cast("NotificationSettings", form)})
        return Redirect(of.prefix, "Changes saved.")

    @of.post("/devices", access=access, form=NewPushSubscription, on=notifications_page, idempotent=True)
    async def turn_device_on(ctx: Context, form: NewPushSubscription) -> Redirect:
        """Send notifications to the browser that sends this form; its script receives the current public key."""
        await push.create_push_subscription(ctx, form)
        data = await push.get_push_public_key(ctx)
        return Redirect(of.prefix, "Notifications are on for this device.", data={**data})

    act = partial(of.act, access=access, on=notifications_page, deletes=True)
    act(
        "/devices/{subscriptionId}/remove",
        "turn_device_off",
        push.delete_push_subscription,
        "Notifications are off for that device.",
    )

    @of.post("/test", access=access, on=notifications_page)
    async def test_device(ctx: Context) -> Redirect:
        """Send a notification to the device of this session."""
        sent = await push.enqueue_test(ctx)
        text = "A test is on its way." if sent else "Notifications are off for this device: turn them on."
        return Redirect(of.prefix, text)

    @of.get("/off", access=auth.public(), template="sign_in/no_mails.html")
    async def mails_off_page(ctx: Context, query: notifications.MailsOffLink) -> dict[str, Any]:
        """The page to turn off one kind of mails without signing in."""
        kind = notifications.find_kind(ctx.services, query["token"])
        return {"token": query["token"], "label": next((each.label for each in kinds if each.name == kind), None)}

    of.act(
        "/off",
        "turn_mails_off",
        notifications.turn_off,
        "You will receive no more of these mails.",
        access=auth.public(),
        on=mails_off_page,
        form=notifications.MailsOffLink,
        fields=("token",),
        one_click=True,
    )

    @of.get("/phones", access=access, template=f"{templates}/phones.html")
    async def phones_page(_: Context) -> dict[str, Any]:
        """What each phone needs to show notifications."""
        return {}


_declare(pages.below("/app/settings/notifications"), auth.session_only(), "settings", _COACH_KINDS, _COACH_FORM)
_declare(pages.below("/train/settings/notifications"), auth.customer(), "train/settings", _CLIENT_KINDS, _CLIENT_FORM)


# --- Settings of a client: profile, language, units and time zone, password, the client's data, and devices -----------


_own = pages.below("/train/settings")
_DETAILS = patch_of(input_of(OwnRecord), name="OwnDetailsForm")
_LANGUAGES = (
    *(("cs", "Čeština"), ("da", "Dansk"), ("de", "Deutsch"), ("en", "English"), ("es", "Español")),
    *(("fr", "Français"), ("it", "Italiano"), ("nl", "Nederlands"), ("nb", "Norsk bokmål"), ("pl", "Polski")),
    *(("pt", "Português"), ("pt-BR", "Português (Brasil)"), ("fi", "Suomi"), ("sv", "Svenska")),
    *(("tr", "Türkçe"), ("el", "Ελληνικά"), ("uk", "Українська"), ("he", "עברית"), ("ar", "العربية")),
    *(("zh", "中文"), ("ja", "日本語"), ("ko", "한국어")),
)


@_own.get("", access=auth.customer(), template="train/settings/index.html")
async def own_settings_page(_: Context) -> dict[str, Any]:
    """The parts of the settings, and signing out."""
    return {}


@_own.get("/profile", access=auth.customer(), template="train/settings/profile.html")
async def own_profile_page(ctx: Context) -> dict[str, Any]:
    """Name and e-mail address, which the coach changes; phone, birthday and photo."""
    profile = await own_profile.get_own_profile(ctx)
    return {"profile": profile, "version": profile["version"]}


_act_own = partial(_own.act, access=auth.customer())
_profile = type(_DETAILS)(only=("phone", "birthday", "version"))
_act_own(
    "/profile",
    "change_own_profile",
    own_profile.update_own_profile,
    "Changes saved.",
    form=_profile,
    on=own_profile_page,
)
_photo, _set = MultipartBody("profilePhotoFile", IMAGE_TYPES), own_profile.set_profile_photo
_act_own("/profile/photo", "set_own_photo", _set, "Photo saved.", form=_photo, on=own_profile_page)


@_own.get("/profile/picture", access=auth.customer(), template="")
async def own_picture(ctx: Context) -> Download:
    """The profile photo; browsers do not keep it."""
    return await own_profile.get_profile_photo(ctx)


@_own.get("/preferences", access=auth.customer(), template="train/settings/preferences.html")
async def own_preferences_page(ctx: Context) -> dict[str, Any]:
    """Language, units and time zone."""
    profile = await own_profile.get_own_profile(ctx)
    language = profile["language"]
    languages = [("", "No preference"), *_LANGUAGES]
    if language and language not in dict(_LANGUAGES):
        languages.append((language, language))
    return {"profile": profile, "languages": languages, "version": profile["version"]}


_chosen: dict[str, Any] = {"form": type(_DETAILS)(only=("timezone", "language", "loadUnit", "version"))}
_act_own(
    "/preferences",
    "change_own_preferences",
    own_profile.update_own_profile,
    "Changes saved.",
    on=own_preferences_page,
    **_chosen,
)


@_own.get("/password", access=auth.customer(), template="train/settings/password.html")
async def own_password_page(_: Context) -> dict[str, Any]:
    """The form to change the password."""
    return {}


@_own.post("/password", access=auth.customer(), on=own_password_page, request_class="unlimited")
async def change_own_password(ctx: Context, form: PasswordChange) -> Redirect:
    """Change the password, confirmed with the current one; every other session ends."""
    try:
        new_password = await own_profile.change_password(ctx, form["currentPassword"], form["password"])
    except Forbidden:
        raise invalid_field("currentPassword", "is not your password", code="WRONG_PASSWORD") from None
    notice = "Password changed. You are signed out on all other devices."
    return Redirect(_own.prefix, notice, device_token=new_password["deviceToken"])


@_own.get("/data", access=auth.customer(), template="train/settings/data.html")
async def own_data_page(ctx: Context) -> dict[str, Any]:
    """The download of the client's data, and the request for erasure."""
    return {"erasure_requested_at": await own_profile.find_erasure_request(ctx)}


@_own.get("/data/my-training.zip", access=auth.customer(), template="", request_class="bulk")
async def export_own_data(ctx: Context) -> Download:
    """Download everything the client may read."""
    return await own_export.export_own_data(ctx)


@_own.get("/data/erasure", access=auth.customer(), template="train/settings/erasure.html")
async def own_erasure_page(ctx: Context) -> dict[str, Any] | Redirect:
    """What erasure means, and the confirmation; without effect once it was asked for."""
    if await own_profile.find_erasure_request(ctx) is not None:
        return Redirect(f"{_own.prefix}/data")
    return {}


_act_own(
    "/data/erasure",
    "request_own_erasure",
    own_profile.request_own_erasure,
    "Your coach has been asked to delete your data.",
    to=f"{_own.prefix}/data",
    on=own_erasure_page,
)


@_own.get("/devices", access=auth.customer(), template="train/settings/devices.html")
async def own_devices_page(ctx: Context) -> dict[str, Any]:
    """The signed-in devices, this one first, with forms to sign out the others."""
    return {"sessions": await sessions.list_own_sessions(ctx)}


_end = partial(_act_own, on=own_devices_page, deletes=True)
_end("/devices/{sessionId}/end", "end_own_session", sessions.end_own_session, "The device is signed out.")
_all_out = "All other devices are signed out."
_end("/devices/end-others", "end_other_sessions", sessions.end_other_sessions, _all_out, idempotent=True)
