"""Settings: the company, the team, API keys, webhooks and notifications, and the account of the signed-in user."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import partial
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict, cast

from marshmallow import Schema

from coaching_service.core.auth import (
    ACTIONS,
    ALL_PERMISSIONS,
    AREAS,
    WEBHOOKS,
    Access,
    coach,
    customer,
    even_while_converting,
    owner_session,
    public,
    session_only,
)
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import now
from coaching_service.core.dates import local_date, next_midnight
from coaching_service.core.errors import Forbidden, invalid_field, require_by_id
from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.field_schemas import input_of, query_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date, Version, patch_of
from coaching_service.integrations import load_unit
from coaching_service.people import account, api_keys, jobs, own_user, team
from coaching_service.people import notifications as unsubscribing
from coaching_service.people.account import AccountChange, AccountDetails, AccountErasure, LoadUnit
from coaching_service.people.api_keys import ApiKey, ApiKeyRestrictions
from coaching_service.people.customers import service
from coaching_service.people.notification_settings import SETTINGS_INPUT, NotificationSettings, SomeSettings
from coaching_service.people.notifications import MailsOffLink
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import sending
from coaching_service.people.push import service as push
from coaching_service.people.push.models import NewPushSubscription
from coaching_service.people.second_factor import service as second_factor
from coaching_service.people.sessions import own_second_factor, passwords
from coaching_service.people.sessions.models import PasswordChange
from coaching_service.people.webhooks import service as webhooks
from coaching_service.people.webhooks.models import DeliveryQuery, NewWebhook, WebhookFields
from coaching_service.web.formatting import describe_device
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect, Render, list_url
from coaching_service.web.records import Records
from coaching_service.web.views.sign_in import describe_api_keys

pages = Pages("")

_settings = pages.below("/app/settings")
_LOAD_UNIT = f"{_settings.prefix}/load-unit"
_UNIT_NAMES = {"kg": "kilograms", "lb": "pounds"}
_COMPANY_FORM = patch_of(input_of(AccountDetails), name="CompanyForm")


@_settings.get("", access=coach(), template="")
async def settings_page(_: Context) -> Redirect:
    """Redirect to the first settings page, which every coach can see."""
    return Redirect("/app/settings/company")


@_settings.get("/company", access=coach(), template="settings/company.html")
async def company_page(ctx: Context) -> dict[str, Any]:
    """The company's name, time zone and load unit."""
    company = await account.get(ctx)
    return {"company": company, "version": company["version"]}


@_settings.post("/company", access=owner_session(), form=_COMPANY_FORM, on=company_page)
async def update_company(ctx: Context, form: AccountChange) -> Redirect:
    """Change the company's details."""
    await account.update(ctx, form)
    return Redirect("/app/settings/company", "Changes saved.")


@_settings.get("/storage", access=owner_session(), template="settings/storage.html")
async def storage_page(ctx: Context) -> dict[str, Any]:
    """The number and the size of the company's files, and how much it may store."""
    return {"usage": await account.get_storage(ctx)}


@_settings.get("/delete-account", access=owner_session(), template="settings/delete_account.html")
async def delete_account_page(ctx: Context) -> dict[str, Any]:
    """Confirmation of deleting the company."""
    active = await service.list_customers(ctx, archived=False, page=1, size=1)
    archived = await service.list_customers(ctx, archived=True, page=1, size=1)
    return {"client_count": active["totalDocs"] + archived["totalDocs"]}


@_settings.post(
    "/delete-account", access=owner_session(), on=delete_account_page, request_class="unlimited", deletes=True
)
async def delete_account(ctx: Context, form: AccountErasure) -> Redirect:
    """Delete the company; its owner confirms with their password."""
    try:
        await account.erase(ctx, form["password"])
    except Forbidden:
        raise invalid_field("password", "is not your password", code="WRONG_PASSWORD") from None
    return Redirect("/app/sign-in", "Your company is deleted. Its data is being erased.", ends_session=True)


@_settings.get("/my-account", access=session_only(), template="settings/my_account.html")
async def my_account_page(ctx: Context) -> dict[str, Any]:
    """The signed-in coach, and how many API keys the coach has."""
    return {"api_keys": await api_keys.count_own(ctx)}


@_settings.post("/my-account", access=session_only(), on=my_account_page, request_class="unlimited")
async def change_password(ctx: Context, form: PasswordChange) -> Redirect:
    """Change the password, confirmed with the current one."""
    try:
        new_password = await passwords.change_password(
            ctx, form["currentPassword"], form["password"], form["deleteApiKeys"]
        )
    except Forbidden:
        raise invalid_field("currentPassword", "is not your password", code="WRONG_PASSWORD") from None
    notice = f"Password changed. You are signed out on all other devices.{describe_api_keys(new_password)}"
    return Redirect("/app/settings/my-account", notice, device_token=new_password["deviceToken"])


class _UnitForm(TypedDict):
    loadUnit: LoadUnit


@_settings.get("/load-unit", access=even_while_converting(owner_session()), template="settings/load_unit.html")
async def load_unit_page(ctx: Context) -> dict[str, Any]:
    """The unit of loads, the other one that loads can be converted to, and the latest conversion or count."""
    unit = (await account.get(ctx))["loadUnit"]
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


@_settings.post("/load-unit/count", access=owner_session(), on=load_unit_page)
async def count_loads(ctx: Context, form: _UnitForm) -> Redirect:
    """Count what would be converted."""
    await load_unit.begin(ctx, form["loadUnit"], dry_run=True)
    return Redirect(_LOAD_UNIT, "Counting has begun.")


@_settings.post("/load-unit", access=owner_session(), on=load_unit_page)
async def convert_loads(ctx: Context, form: _UnitForm) -> Redirect:
    """Convert all loads."""
    await load_unit.begin(ctx, form["loadUnit"], dry_run=False)
    return Redirect(_LOAD_UNIT, "The conversion has begun.")


# --- Settings: the team and the permissions of its employees ----------------------------------------------------------


_team = Records(pages, "/app/settings/team", "employeeId", "employee", owner_session(), team.get)
_PERMISSION_GRID = {"areas": [area.name for area in AREAS], "actions": ACTIONS}
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


@_team.get("", access=owner_session(), template="settings/team.html")
async def team_page(ctx: Context) -> dict[str, Any]:
    """The owner and the employees."""
    coaches, holders = await gather_reads(ctx, team.list_coaches(ctx), second_factor.list_holders(ctx))
    return {"coaches": coaches, "holders": holders, **_PERMISSION_GRID}


@_team.get("/new", access=owner_session(), template="settings/employee.html")
async def new_employee_page(_: Context) -> dict[str, Any]:
    """The form for a new employee."""
    return {"employee": None, "default_permissions": _DEFAULT_PERMISSIONS, **_PERMISSION_GRID}


@_team.create("/new", on=new_employee_page)
async def create_employee(ctx: Context, form: team.NewEmployee) -> Redirect:
    """Add an employee, who receives an e-mail to set a password."""
    await team.create(ctx, form["name"], form["email"], form["permissions"], form["customersScope"])
    return Redirect("/app/settings/team", f"{form['name']} added. We sent an email with a link to set a password.")


_employee_page = _team.page(lambda _: _PERMISSION_GRID)


@_team.each.post("", access=owner_session(), form=_EmployeeForm, on=_employee_page)
async def update_employee(ctx: Context, employee_id: ObjectId, form: team.EmployeeChange) -> Redirect:
    """Change an employee; permissions apply from their next request."""
    await team.update(ctx, employee_id, form)
    return Redirect("/app/settings/team", f"Changes to {form['name']} saved.")


async def _count_clients(ctx: Context, employee_id: ObjectId) -> dict[str, int]:
    assigned = await service.list_customers(ctx, archived=False, page=1, size=1, trainers=[employee_id])
    return {"client_count": assigned["totalDocs"]}


@_team.each.confirm(
    "/reset-second-factor", access=owner_session(), template="settings/reset_second_factor.html", deletes=True
)
async def reset_second_factor(ctx: Context, employee_id: ObjectId) -> ConfirmedAction:
    """Remove the second factor of an employee who has lost it."""
    employee = await team.get(ctx, employee_id)
    done = Redirect(_team.prefix, f"{employee['name']} can sign in with the password alone.")
    act = partial(own_second_factor.reset_of_employee, ctx, employee_id)
    return ConfirmedAction({"employee": employee}, act, done)


_team.delete(team.delete, variables=_count_clients, done="{} removed.")


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


async def _get_key(ctx: Context, key_id: ObjectId) -> ApiKey:
    return require_by_id(await api_keys.list_keys(ctx), key_id, "API key")


_api_keys = Records(pages, "/app/settings/api-keys", "keyId", "api_key", session_only(), _get_key, shown_as="key")
_api_keys.delete(api_keys.revoke, done="{} deleted. Requests with it are rejected from now on.", from_list=True)


@_api_keys.list
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


@_api_keys.create()
async def create_api_key(ctx: Context, form: _NewKey) -> Render:
    """Create a key and show its secret."""
    if not set(form["permissions"]) <= ctx.caller.permissions:
        raise invalid_field("permissions", "must be among your own", code="PERMISSION_NOT_HELD")
    restrictions: ApiKeyRestrictions = {
        "readOnly": form["readOnly"],
        "permissions": None if form["actsAsCompany"] else form["permissions"] or None,
        "expiresAt": _end_of_day(ctx, form["expires"]) if form["expires"] else None,
        "outreach": form["outreach"],
        "confirmInChat": form["confirmInChat"],
        "mcpOnly": form["mcpOnly"],
    }
    if form["actsAsCompany"]:
        held = form["permissions"] or sorted(ALL_PERMISSIONS)
        key = await api_keys.create(ctx, form["name"], restrictions, acts_as="company", permissions=held)
    else:
        key = await api_keys.create(ctx, form["name"], restrictions)
    repeat_notice = f"{key['name']} has already been created. Select Show to see its secret."
    return Render({"revealed_key": _revealed(key, key["key"], is_new=True)}, repeat_notice)


@_api_keys.post("/{keyId}/reveal", access=session_only(), on=api_keys_page)
async def reveal_api_key(ctx: Context, key_id: ObjectId) -> Render:
    """Show a key's secret again, which is recorded in the audit log."""
    key = await _get_key(ctx, key_id)
    revealed_key = _revealed(key, await api_keys.reveal(ctx, key_id), is_new=False)
    return Render({"revealed_key": revealed_key}, "Select Show to see the secret again.")


def _revealed(key: ApiKey, secret: str, *, is_new: bool) -> dict[str, Any]:
    return {"name": key["name"], "secret": secret, "isNew": is_new, "isOfCompany": key["actsAs"] == "company"}


def _end_of_day(ctx: Context, day: str) -> datetime:
    """Return the last millisecond of a day in the company's time zone.

    Raises InvalidFields for a day in the past.
    """
    last_day = date.fromisoformat(day)
    if last_day < ctx.caller.today():
        raise invalid_field("expires", "must not be in the past", code="IN_THE_PAST")
    return next_midnight(last_day, ctx.caller.company.timezone) - _ONE_MILLISECOND


# --- Settings: webhooks and their deliveries --------------------------------------------------------------------------


_webhooks = Records(pages, "/app/settings/webhooks", "webhookId", "webhook", coach(WEBHOOKS), webhooks.get)
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
    created = await webhooks.create(ctx, {**form, "isActive": True, "allCompanies": False})
    repeat_notice = "The webhook has already been created. Its secret is not shown again; you can rotate it."
    return Render({"created": created}, repeat_notice)


@_webhooks.each.get("", access=coach(WEBHOOKS), query=query_of(DeliveryQuery)(), template="settings/webhook.html")
async def webhook_page(ctx: Context, webhook_id: ObjectId, query: DeliveryQuery) -> dict[str, Any]:
    """A webhook and its deliveries."""
    webhook, page = await gather_reads(
        ctx,
        webhooks.get(ctx, webhook_id),
        webhooks.list_deliveries(
            ctx, webhook_id, limit=_PAGE_SIZE, after=query.get("after"), status=query.get("status")
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


_webhooks.change(_WebhookForm, webhooks.update, on=webhook_page)
_webhooks.delete(webhooks.delete, done="Webhook deleted. Nothing is sent to it any more.")


@_webhooks.each.post("/test", access=coach(WEBHOOKS), on=webhook_page)
async def send_webhook_test(ctx: Context, webhook_id: ObjectId) -> Redirect:
    """Send a test event."""
    await webhooks.send_test(ctx, webhook_id)
    return Redirect(_webhooks.path(webhook_id), "The test event is being sent. Reload the page to see the result.")


@_webhooks.each.post("/rotate-secret", access=coach(WEBHOOKS), on=webhook_page)
async def rotate_webhook_secret(ctx: Context, webhook_id: ObjectId) -> Render:
    """Replace the secret and show the new one."""
    rotated = await webhooks.rotate_secret(ctx, webhook_id)
    return Render({"new_secret": rotated["secret"]}, "The secret has already been rotated. It is not shown again.")


@_webhooks.each.post("/deliveries/{deliveryId}/redeliver", access=coach(WEBHOOKS), on=webhook_page)
async def redeliver_webhook_event(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> Redirect:
    """Send a delivery again."""
    await webhooks.redeliver(ctx, webhook_id, delivery_id)
    return Redirect(_webhooks.path(webhook_id), "The event is being sent again. Reload the page to see the result.")


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


def _declare(of: Pages, access: Access, templates: str, kinds: tuple[_Kind, ...], schema: Schema) -> None:
    """Declare the pages of the settings of the caller, whose templates are in the folder `templates`."""

    @of.get("", access=access, template=f"{templates}/notifications.html")
    async def notifications_page(ctx: Context) -> dict[str, Any]:
        """Which notifications the caller gets, when, and on which devices."""
        devices = await push.list_own_devices(ctx)
        return {
            "kinds": kinds,
            "settings": (await own_user.get(ctx))["notifications"],
            "devices": [{**each, "name": describe_device(each["userAgent"])} for each in devices],
            "has_device": any(each["isCurrent"] for each in devices),
            "push_key": (await push_keys.get_public_key(ctx.services))["key"],
        }

    @of.post("", access=access, form=schema, on=notifications_page, idempotent=True)
    async def change_notifications(ctx: Context, form: SomeSettings) -> Redirect:
        """Change which notifications the caller gets."""
        await own_user.update(ctx, {"notifications": cast("NotificationSettings", form)})
        return Redirect(of.prefix, "Changes saved.")

    @of.post("/devices", access=access, form=NewPushSubscription, on=notifications_page, idempotent=True)
    async def turn_device_on(ctx: Context, form: NewPushSubscription) -> Redirect:
        """Send notifications to the browser that sends this form; its script receives the current public key."""
        await push.subscribe(ctx, form)
        data = await push_keys.get_public_key(ctx.services)
        return Redirect(of.prefix, "Notifications are on for this device.", data={**data})

    @of.post("/devices/{subscriptionId}/remove", access=access, on=notifications_page, deletes=True)
    async def turn_device_off(ctx: Context, subscription_id: ObjectId) -> Redirect:
        """Send no more notifications to a device."""
        await push.unsubscribe(ctx, subscription_id)
        return Redirect(of.prefix, "Notifications are off for that device.")

    @of.post("/test", access=access, on=notifications_page)
    async def test_device(ctx: Context) -> Redirect:
        """Send a notification to the device of this session."""
        sent = await sending.enqueue_test(ctx)
        text = "A test is on its way." if sent else "Notifications are off for this device: turn them on."
        return Redirect(of.prefix, text)

    @of.get("/off", access=public(), template="sign_in/no_mails.html")
    async def mails_off_page(ctx: Context, query: MailsOffLink) -> dict[str, Any]:
        """The page to turn off one kind of mails without signing in."""
        kind = unsubscribing.find_kind(ctx.services, query["token"])
        return {"token": query["token"], "label": next((each.label for each in kinds if each.name == kind), None)}

    @of.post("/off", access=public(), on=mails_off_page, one_click=True)
    async def turn_mails_off(ctx: Context, form: MailsOffLink) -> Redirect:
        """Turn off the kind of mails that the token was mailed in."""
        await unsubscribing.turn_off(ctx, form["token"])
        return Redirect(f"{of.prefix}/off", "You will receive no more of these mails.")

    @of.get("/phones", access=access, template=f"{templates}/phones.html")
    async def phones_page(_: Context) -> dict[str, Any]:
        """What each phone needs to show notifications."""
        return {}


_declare(pages.below("/app/settings/notifications"), session_only(), "settings", _COACH_KINDS, _COACH_FORM)
_declare(pages.below("/train/settings/notifications"), customer(), "train/settings", _CLIENT_KINDS, _CLIENT_FORM)
