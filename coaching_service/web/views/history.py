"""What changed and by whom, with Undo; operations that continue in the background; and the audit log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, TypedDict, cast

from coaching_service.core import audit
from coaching_service.core.auth import CUSTOMERS, Access, coach, customer, owner_session, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import Interface
from coaching_service.core.dates import midnight, next_midnight
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.events import Accepted
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import SearchedDate
from coaching_service.integrations import background_jobs
from coaching_service.integrations.change_descriptions import describe_documents
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people import assistants, audit_log, jobs, own_profile, team
from coaching_service.people.changes import service as changes
from coaching_service.people.changes.models import PLACES, ChangeSummary, UndoResult
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Consent
from coaching_service.people.sessions import service as sessions
from coaching_service.progress import personal_records
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.web import pages as web_pages
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.formatting import quantity, record_name
from coaching_service.web.views.customer_layout import customer_path, load_header

pages = web_pages.Pages("")
_history = pages.below("/app")


# --- What an operation did, in words: the heading of a change in the history ------------------------------------------


# Verbs that are the first word of an operation's name, and whose past says what it did.
_REGULAR_VERBS = re.compile(
    "add|adjust|answer|approve|archive|assign|change|check|clear|complete|confirm|convert|count|create|delete|deliver|"
    "dismiss|duplicate|end|expire|finish|import|mark|move|pause|preview|propose|record|reject|remove|rename|reorder|"
    "replace|restore|resume|review|save|schedule|start|unassign|upload"
)
# The first words of others, and what they did.
_VERBS = {
    "apply": "applied",
    "cancel": "cancelled",
    "copy": "copied",
    "edit": "changed",
    "log": "logged",
    "new": "created",
    "place": "moved",
    "put": "saved",
    "send": "sent",
    "set": "set",
    "shift": "moved",
    "skip": "skipped",
    "stop": "stopped",
    "swap": "swapped",
    "sync": "brought up to date",
    "unarchive": "restored",
    "undo": "undone",
    "update": "changed",
    "upsert": "saved",
    "write": "written",
}
# The usual words for the nouns in the names of operations (docs/glossary.md), in this order.
_NOUNS = {
    "workout blocks": "workouts",
    "workout block": "workout",
    "program block": "program workout",
    "metrics": "metric",
    "check ins": "check-ins",
    "check in": "check-in",
    "wblock": "workout",
    "witem": "workout item",
    "customers": "clients",
    "customer": "client",
    "block": "workout",
    "training max": "training maximum",
    "own": "",
}
# Names that the rule describes badly.
_EXCEPTIONS = {
    "answerSession": "Comment sent",
    "requestOwnErasure": "Erasure requested",
    "addForm": "Form added to a workout",
    "addMetrics": "Metric set added to a workout",
    "addReminder": "Reminder added to a workout",
    "addTask": "Task added to a workout",
    "archive": "Client archived",
    "assignSet": "Metric set assigned",
    "bulkAddGroups": "Groups added to clients",
    "bulkAssignTrainer": "Trainer of clients changed",
    "bulkChange": "Clients changed",
    "bulkRemoveGroups": "Groups removed from clients",
    "bulkCreateCheckIns": "Check-in added to clients",
    "bulkRemindOfForms": "Clients reminded of forms",
    "bulkSendMessage": "Message sent to clients",
    "changeCard": "Planned sets changed",
    "changeDetails": "Client changed",
    "changeNotePin": "Note pinned or unpinned",
    "clearLog": "Log of a workout item cleared",
    "commentOnMedia": "Comment sent",
    "createProgramFromCalendar": "Program created from a calendar",
    "importProgram": "Program imported from a sheet",
    "delete": "Client deleted",
    "deleteExerciseOverride": "Changes of a shared exercise removed",
    "deleteOverride": "Changes of a shared exercise removed",
    "decline": "Invitations declined",
    "invite": "Client invited",
    "inviteCustomer": "Client invited",
    "markClientMessagesRead": "Messages marked as read",
    "markClientResponseReviewed": "Response marked as reviewed",
    "markMessagesRead": "Messages marked as read",
    "markSessionCommentsRead": "Comments marked as read",
    "markOwnMessagesRead": "Messages marked as read",
    "placeItem": "Workout item moved",
    "runCheckedImport": "Clients imported",
    "runHistoryImport": "Training history imported",
    "runOwnImport": "Training history imported",
    "saveAsTemplate": "Template created from a workout",
    "replaceExerciseOverride": "Shared exercise changed",
    "replaceScheduledExercise": "Exercise replaced in workouts",
    "remindClient": "Client reminded of forms",
    "remindOfForms": "Clients reminded of forms",
    "replyToClient": "Message sent",
    "replyToResponse": "Message sent",
    "resendConfirmation": "Link to confirm an address sent",
    "restore": "Client restored",
    "saveOverride": "Shared exercise changed",
    "setVisibility": "Visibility of a day changed",
    "shiftWorkoutBlocks": "Workouts moved to other days",
    "undo": "Change undone",
    "undoCustomerChange": "Change undone",
    "unassignSet": "Metric set unassigned",
    "testDevice": "Test notification sent",
    "turnMailsOff": "Mails turned off",
    "turnDeviceOff": "Notifications of a device turned off",
    "turnDeviceOn": "Notifications of a device turned on",
}


def describe_operation(operation: str) -> str:
    """Describe an operation by the name of its route, tool or form: `updateNote` is `Note changed`.

    A name that begins with an unknown verb is only divided into words.
    """
    if operation in _EXCEPTIONS:
        return _EXCEPTIONS[operation]
    words = _split(operation)
    if not is_described(operation):
        return _capitalize(" ".join(words)) or "Change"
    subject = " ".join(words[1:])
    for noun, usual in _NOUNS.items():
        subject = re.sub(rf"\b{noun}\b", usual, subject)
    return _capitalize(f"{subject.strip()} {_past_of(words[0])}")


def is_described(operation: str) -> bool:
    """Return whether there are words for an operation, beyond its name."""
    words = _split(operation)
    return operation in _EXCEPTIONS or (len(words) > 1 and _past_of(words[0]) is not None)


def _past_of(verb: str) -> str | None:
    return f"{verb.removesuffix('e')}ed" if _REGULAR_VERBS.fullmatch(verb) else _VERBS.get(verb)


def _split(operation: str) -> list[str]:
    """Return the words of a name such as `updateNote` or `update_note`, in lower case, without a leading `bulk`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", operation).replace("_", " ").lower().split()
    return words[1:] if words[:1] == ["bulk"] else words


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- The bulk operations, and their undo, that continue in the background: their progress and their results -----------


_PATH = "/app/jobs"
_SHOWN = 100
_ENDS = {"done": "Done", "failed": "Not completed", "cancelled": "Cancelled"}
_NOT_UNDOABLE = ("bulkDeleteCustomers", "bulkSendMessage", "bulkRemindOfForms")

_jobs = _history.below("/jobs")


def redirect_after_undo(result: UndoResult | Accepted, location: str) -> web_pages.Redirect:
    """Return the response to a form that undoes a batch: the page of its job, or `location` with what was restored."""
    if isinstance(result, Accepted):
        return web_pages.Redirect(job_path(result))
    if not result["failed"]:
        return web_pages.Redirect(location, "Undone. Undo again to redo.")
    failed = quantity(len(result["failed"]), "record")
    restored = quantity(result["ok"], "record")
    return web_pages.Redirect(location, f"{restored} restored; {failed} could not be, because of later changes.")


def job_path(accepted: Accepted) -> str:
    """Return the path of the page of a job."""
    return f"{_PATH}/{accepted.job_id}"


def start_operation(
    ctx: Context, operation: str, ids: list[ObjectId], arguments: Mapping[str, Any], *, return_url: str
) -> web_pages.QueuedTask:
    """Return the response to a form that changes clients: the page of a job, which leads back to `return_url`."""
    ctx = replace(ctx, operation=operation)

    async def begin(claim: Claim | None) -> str:
        try:
            accepted = await customer_bulk.begin_and_wait(ctx, ids, arguments, claim)
        except NotFound as gone:  # what was chosen in the form, not the page
            raise Conflict(gone.message, code=gone.code) from gone
        return web_pages.list_url(job_path(accepted), {"next": return_url})()

    return web_pages.QueuedTask(begin)


@_jobs.get("", access=coach(CUSTOMERS.VIEW), template="customers/bulk_jobs.html")
async def bulk_jobs_page(ctx: Context) -> dict[str, Any]:
    """The latest jobs of the coach."""
    described = []
    for job in await jobs.list_latest_batches(ctx, _SHOWN):
        of_what = quantity(job["total"], "change" if job["kind"] == "undo" else "client")
        state = f"{_ENDS.get(job['status'], 'Waiting to begin')}, {of_what}"
        if job["status"] == "running":
            state = f"{job['done']:,} of {of_what}"
        described.append((job, _name(job), state))
    return {"jobs": described}


@_jobs.get("/{bulkJobId}", access=coach(CUSTOMERS.VIEW), template="customers/bulk_job.html")
async def bulk_job_page(ctx: Context, bulk_job_id: ObjectId, query: web_pages.ReturnTo) -> dict[str, Any]:
    """The progress of a job, and its result."""
    job = await jobs.get_complete(ctx, bulk_job_id, batch=True)
    result, work = job["result"] or {}, job["work"]
    failed, skipped = result.get("failed", []), Counter(each["code"] for each in result.get("skipped", []))
    outcome = f"{quantity(result.get('ok', 0), 'record')} restored"
    if job["kind"] != "undo":  # those of whom anything has changed: `5 of 40 clients changed`
        reported, total = result.get("results"), job["total"]
        changed = result.get("ok", 0) if reported is None else sum(each["changed"] > 0 for each in reported)
        part = "" if changed == total else f"{changed:,} of "
        outcome = f"{part}{quantity(total, 'client')} {_DONE.get(work['operation'], 'changed')}"
    ids = [each["customerId"] for each in failed[:_SHOWN] if "customerId" in each]
    names: Mapping[Any, str] = await bulk.load_names(ctx, ids)
    return {
        "job": job,
        "title": _name(job),
        "outcome": outcome,
        "skipped": [_SKIPPED[code].format(quantity(count, "client")) for code, count in skipped.items()],
        "may_control": jobs.may_control_batch(ctx, job),
        "is_undoable": work["operation"] not in _NOT_UNDOABLE or work.get("arguments", {}).get("deliverAt"),
        "is_unfinished": jobs.is_unfinished(job),
        # Who was not changed (None if it is no client), the name, which is empty for one who is gone, and the reason.
        "failures": [
            (client := each.get("customerId"), names.get(client, ""), each["message"]) for each in failed[:_SHOWN]
        ],
        "failed_count": len(failed),
        "return_url": local_path(query["next"], "/app/customers"),
        "next": query["next"] or "",
    }


# What an operation has done with a client, if it has not changed the client.
_DONE = {"bulkSendMessage": "written to", "bulkRemindOfForms": "reminded", "bulkDeleteCustomers": "deleted"}
_SKIPPED = {
    "NOTHING_OVERDUE": "{} without an overdue form, archived, away or ill.",
    "REMINDED_TODAY": "{} reminded today already.",
}


def _name(job: jobs.StoredJob) -> str:
    if job["kind"] == "undo":
        return "Undo of changes"
    name = describe_operation(job["work"]["operation"])
    return re.sub("([Cc]lient)s", r"\1", name) if job["total"] == 1 else name


@_jobs.post("/{bulkJobId}/cancel", access=coach(CUSTOMERS.VIEW), on=bulk_job_page, idempotent=True)
async def cancel_bulk_job(ctx: Context, bulk_job_id: ObjectId) -> web_pages.Redirect:
    """End a job before its next step."""
    await jobs.get_complete(ctx, bulk_job_id, batch=True)
    job = await background_jobs.cancel_job(ctx, bulk_job_id)
    return web_pages.Redirect(
        f"{_PATH}/{bulk_job_id}", "Cancelled." if job["status"] == "cancelled" else "It had ended already."
    )


@_jobs.post("/{bulkJobId}/undo", access=coach(CUSTOMERS.VIEW), on=bulk_job_page, request_class="bulk", idempotent=True)
async def undo_bulk_job(ctx: Context, bulk_job_id: ObjectId, form: web_pages.ReturnTo) -> web_pages.Redirect:
    """Undo what a job has changed."""
    job = await jobs.get_complete(ctx, bulk_job_id, batch=True)
    result = await changes.undo_or_begin_job(ctx, job["batchId"] if job["result"] else bulk_job_id)
    return redirect_after_undo(result, local_path(form["next"], f"{_PATH}/{bulk_job_id}"))


# --- The history of a client and of the company: what changed, by whom and through which interface, with Undo ---------


_OF_CLIENT = "/customers/{customerId}/history"
_OF_COMPANY = "/settings/history"
COMPANY_PATH = f"/app{_OF_COMPANY}"
_PAGE_SIZE = 30
_MAX_NAMED = 10
_VIA: dict[Interface, str] = {
    "session": "Web application",
    "apiKey": "API key",
    "assistant": "Assistant",
    "application": "Application",
    "client": "Client's own",
    "system": "Automatic",
}
_REASONS = {
    "VERSION_CONFLICT": (
        "This cannot be undone: something that it changed has been changed again since. Nothing was changed. "
        "Undo the later change first, or change it by hand."
    ),
    "NOT_UNDOABLE": "This change cannot be undone. Nothing was changed.",
}
_UNDONE_ALREADY = "This change has been undone already."


class _HistoryQuery(web_pages.PartQuery):
    via: Interface | None


class _UndoForm(web_pages.ReturnTo):
    """`all`: every change of the bulk operation."""

    all: Annotated[bool, Default(False)]


@_history.get(_OF_CLIENT, access=coach(CUSTOMERS.VIEW), template="history/list.html")
async def customer_history_page(ctx: Context, customer_id: ObjectId, query: _HistoryQuery) -> dict[str, Any]:
    """The changes of a client, newest first."""
    customer, path = await load_header(ctx, customer_id), customer_path(customer_id, "/history")
    variables = await list_changes(ctx, path, query, customer_id=customer_id, via=query["via"])
    return {**variables, "customer": customer, "layout": "customer/layout.html"}


@_history.get(_OF_COMPANY, access=coach(CUSTOMERS.VIEW), template="history/list.html")
async def history_page(ctx: Context, query: _HistoryQuery) -> dict[str, Any]:
    """The changes of the company that the caller may see, newest first."""
    return await list_changes(ctx, COMPANY_PATH, query, via=query["via"]) | {"layout": "settings/layout.html"}


@_history.get(f"{_OF_CLIENT}/{{changeId}}", access=coach(CUSTOMERS.VIEW), template="history/change.html")
async def customer_change_page(ctx: Context, customer_id: ObjectId, change_id: ObjectId) -> dict[str, Any]:
    """A change of a client with the values before and after."""
    customer = await load_header(ctx, customer_id)
    variables = await _read_change(ctx, change_id)
    if variables["change"]["customerId"] != customer_id:
        raise NotFound("change")
    return {
        **variables,
        "customer": customer,
        "history_path": customer_path(customer_id, "/history"),
        "layout": "customer/layout.html",
    }


@_history.get(f"{_OF_COMPANY}/{{changeId}}", access=coach(CUSTOMERS.VIEW), template="history/change.html")
async def change_page(ctx: Context, change_id: ObjectId) -> dict[str, Any]:
    """A change with the values before and after."""
    variables = await _read_change(ctx, change_id)
    return variables | {"history_path": COMPANY_PATH, "layout": "settings/layout.html"}


_undo_form = partial(_history.post, access=coach(CUSTOMERS.VIEW), form=_UndoForm, request_class="bulk", idempotent=True)


@_undo_form(f"{_OF_CLIENT}/{{changeId}}/undo", locks="customer", on=customer_change_page)
async def undo_customer_change(
    ctx: Context, customer_id: ObjectId, change_id: ObjectId, form: _UndoForm
) -> web_pages.Redirect:
    """Undo a change of a client, or all changes of its bulk operation."""
    return await _undo(ctx, change_id, form, customer_path(customer_id, "/history"), customer_id)


@_undo_form(f"{_OF_COMPANY}/{{changeId}}/undo", on=change_page)
async def undo_change(ctx: Context, change_id: ObjectId, form: _UndoForm) -> web_pages.Redirect:
    """Undo a change, or all changes of its bulk operation."""
    return await _undo(ctx, change_id, form, COMPANY_PATH, None)


async def _undo(
    ctx: Context, change_id: ObjectId, form: _UndoForm, history_path: str, customer_id: ObjectId | None
) -> web_pages.Redirect:
    """Undo a change. Raises Conflict with the reason in words if it cannot be undone."""
    location = local_path(form["next"], history_path)
    if customer_id is None and await changes.is_batch(ctx, change_id):  # the notice of an operation on several clients
        return redirect_after_undo(await changes.undo_or_begin_job(ctx, change_id), location)
    change = await changes.find_visible(ctx, change_id)
    if customer_id not in (None, change["customerId"]):
        raise NotFound("change")
    if form["all"] and "batchId" in change:
        return redirect_after_undo(await changes.undo_or_begin_job(ctx, change["batchId"]), location)
    if change["undoneBy"] is not None:
        return web_pages.Redirect(location, _UNDONE_ALREADY)
    try:
        await changes.undo_change(ctx, change_id)
    except Conflict as error:
        raise Conflict(_REASONS.get(error.code or "", str(error)), code=error.code) from None
    return web_pages.Redirect(location, "Undone. Undo again to redo.")


async def list_changes(ctx: Context, path: str, query: web_pages.PartQuery, **filters: Any) -> dict[str, Any]:
    """Return the variables of a list of changes with its path and query; `filters` are as in changes.list_changes."""
    page = await changes.list_changes(ctx, limit=_PAGE_SIZE, after=query["after"], **filters)
    return {
        "rows": await _describe_all(ctx, page["docs"]),
        "history_path": path,
        "interfaces": [("", "All"), *_VIA.items()],
        "next_url": web_pages.list_url(path, {**query, "after": page["nextCursor"]})() if page["hasMore"] else None,
    }


async def _read_change(ctx: Context, change_id: ObjectId) -> dict[str, Any]:
    """Return the variables of a change's page."""
    change = await changes.get_change(ctx, change_id)
    [described] = await _describe_all(ctx, [cast("ChangeSummary", change)])
    # The names and dates of changed documents: the first ten workouts, and personal records.
    present: dict[ObjectId, dict[str, Any]] = {}
    if (customer_id := change["customerId"]) is not None:
        changed = [(each["kind"], each["_id"]) for each in change["documents"] if each["action"] == "changed"]
        for block_id in [identifier for kind, identifier in changed if kind == "workout"][:_MAX_NAMED]:
            with suppress(NotFound):  # deleted since
                block = await workouts.get(ctx, workouts.ClientCalendar(customer_id), block_id)
                present[block_id] = {"name": block["name"], "date": block["date"]}
        if any(kind == "personal_record" for kind, _ in changed):
            for record in await personal_records.list_records(ctx, customer_id):
                name = f"{record['exerciseName']} ({record_name(record).lower()})"
                present[record["_id"]] = {"name": name, "date": record["date"]}
    return {
        "change": described,
        "documents": await describe_documents(ctx, change["documents"], present),
        "is_undoable": await changes.is_undoable(ctx, change_id),
    }


async def _describe_all(ctx: Context, listed: Sequence[ChangeSummary]) -> list[dict[str, Any]]:
    """Return changes in words: `title`, `through` (interface, key or assistant), `place` of its approval, `client`."""
    credentials = await assistants.name_credentials(ctx, [change["_id"] for change in listed])
    client_ids = {change["customerId"] for change in listed if change["customerId"] is not None}
    clients = await customers.find_references(ctx, list(client_ids))
    return [
        {
            **change,
            "title": describe_operation(change["operation"]),
            "place": PLACES[change["decidedIn"]] if change["decidedIn"] is not None else "",
            "through": ": ".join(filter(None, [_VIA[change["via"]], credentials.get(change["_id"])])),
            "client": clients.get(change["customerId"]) if change["customerId"] else None,
        }
        for change in listed
    ]


# --- The audit log of the company for its owner, and for each user the own sign-ins -----------------------------------


_AUDIT_LOG = "/app/settings/audit-log"
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


@pages.get(_AUDIT_LOG, access=owner_session(), template="settings/audit_log.html")
async def audit_log_page(ctx: Context, query: _Filters) -> dict[str, Any]:
    """Who did what, and who has read whose data."""
    page = await audit_log.list_audit_entries(ctx, _to_query(ctx, query))
    names = ("action", "actorId", "from", "to", "customerId")
    chosen = {name: str(query.get(name) or "") for name in names}
    client = query.get("customerId")
    named = await customers.find_references(ctx, [client]) if client is not None else {}
    link = web_pages.list_url(_AUDIT_LOG, chosen)
    return {
        "entries": page["docs"],
        "labels": LABELS,
        "interfaces": _INTERFACES,
        "query": chosen,
        "is_filtered": any(chosen.values()),
        "client": next(iter(named.values()), None),
        "coaches": await team.list_coaches(ctx),
        "actions": sorted(LABELS.items(), key=lambda each: each[1]),
        "is_first_part": not query.get("after"),
        "first_url": link(),
        "next_url": link(after=page["nextCursor"]) if page["hasMore"] else None,
        "csv_url": web_pages.list_url(f"{_AUDIT_LOG}/audit-log.csv", chosen)(),
        "days": ctx.services.audit_days,
    }


@pages.get(f"{_AUDIT_LOG}/audit-log.csv", access=owner_session(), template="", request_class="bulk")
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


def _declare_sign_ins(settings: str, access: Access, template: str, password_page: str) -> None:
    @pages.get(f"{settings}/sign-ins", access=access, template=template)
    async def sign_ins_page(ctx: Context) -> dict[str, Any]:
        """The last sign-ins of the user."""
        return {"sign_ins": await audit.list_sign_ins(ctx)}

    pages.act(
        f"{settings}/sign-ins/not-me",
        "report_sign_in",
        sessions.end_other_sessions,
        "All other devices are signed out. Now choose another password.",
        access=access,
        on=sign_ins_page,
        to=password_page,
        deletes=True,
    )


_declare_sign_ins("/app/settings", session_only(), "settings/sign_ins.html", "/app/settings/my-account")
_declare_sign_ins("/train/settings", customer(), "train/settings/sign_ins.html", "/train/settings/password")


@pages.get("/train/settings/access", access=customer(), template="train/settings/access.html")
async def own_access_page(ctx: Context) -> dict[str, Any]:
    """Who has looked at or changed the client's data, by day, and what else than people may."""
    profile = await own_profile.get_own_profile(ctx)
    return {
        "consent": profile["consent"],
        "days": group_by_day(await audit_log.list_access(ctx, ctx.caller.id)),
        "kept": ctx.services.audit_days,
    }


pages.act(
    "/train/settings/access",
    "change_own_consent",
    lambda ctx, form: own_profile.update_own_profile(ctx, {"consent": form}),
    "Changes saved.",
    access=customer(),
    on=own_access_page,
    form=Consent,
    idempotent=True,
)


def group_by_day(entries: Sequence[audit_log.ClientAccess], most: int = 60) -> list[dict[str, Any]]:
    """Return the latest days on which someone has looked at or changed the data of a client, with what they did."""
    days: dict[str, list[dict[str, Any]]] = {}
    for each in entries:
        role = {"assistant": "assistant", "application": "application", "key": "by API key"}.get(each["actor"]["type"])
        days.setdefault(each["date"], []).append({**each, "name": each["actor"]["name"], "role": role})
    return [{"date": day, "who": who} for day, who in list(days.items())[:most]]
