"""Settings: export and import of the company, and import of training history by coaches and clients."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core.auth import CUSTOMERS, coach, customer, owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.fields import Default, input_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX, ZIP
from coaching_service.core.text import write_rows
from coaching_service.core.validation import ListOf, Text
from coaching_service.integrations import background_jobs, company_export
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_files.tables import Question
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import models as import_models
from coaching_service.integrations.history_import import undoing
from coaching_service.library.imported_names import CREATE, SKIP, NameInFile, read_answers
from coaching_service.people import account, jobs
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.progress import own_today
from coaching_service.web.formatting import SOURCES, name_options, quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_layout import workout_path

pages = Pages("")


# --- Imports of training history: what the pages say about a file, and what their forms answer ------------------------


MOST_NAMES = 300
_SHOWN_REASONS, _SHOWN_PROBLEMS, _SHOWN_ENTRIES, _SHOWN_LINES = 3, 50, 3, 5
_KINDS = {
    "VALUE_LEFT_OUT": "Values that could not be read: the rows are imported without them",
    "ALREADY_THERE": "Workouts that are there already",
    "IN_THE_FUTURE": "Days after today",
    "INVALID_DATE": "No such day",
    "REQUIRED": "Empty cells without which a row cannot be imported",
    "SKIPPED": "Left out by your answers",
    "OTHER_CLIENT": "Rows of other clients",
    "OTHER_VALUE": "Days that have another value already",
    "NOT_ASSIGNED": "Metric sets that the client is no longer assigned",
    "NOT_A_SET": "Rests, and rows without a set",
    "UNKNOWN_COLUMN": "A column that is not read",
    "REPEATED_COLUMN": "A column that has what another one has",
    "UNKNOWN_SHEET": "A sheet without a table of sets",
    "DATE_ORDER": "Dates whose order is not known yet",
    "DISTANCE_UNIT": "Distances without a unit",
    "DURATION_UNIT": "Durations without a unit",
    "PERMISSION_MISSING": "Exercises that are not in the library",
}
_FORMATS = {
    **{source: f"An export of {name}" for source, name in SOURCES.items()},
    "workouts": "Workouts of this service",
    "sets": "A table of sets",
    "customers": "A list of clients",
    "measurements": "A table of body measurements",
}
_FIELDS = {
    "LOAD_UNIT": "loadUnit",
    "DISTANCE_UNIT": "distanceUnit",
    "DURATION_UNIT": "durationUnit",
    "DATE_ORDER": "dateOrder",
    "DECIMAL_SIGN": "decimalSign",
}
_NAMED = {"CUSTOMER": "customers", "COLUMN": "columns", "METRIC": "names"}
_REMOVED = {
    "customers": "clients removed",
    "sessions": "workouts removed",
    "exercises": "exercises removed",
    "values": "measurements removed",
}
_COUNTED = {
    "rows": "rows",
    "sessions": "workouts",
    "sets": "sets",
    "values": "measurements",
    "exercises": "new exercises",
    "customers": "new clients",
    "reported": "rows left out",
}
_OPTIONS = {
    "kg": "Kilograms",
    "lb": "Pounds",
    "km": "Kilometers",
    "mi": "Miles",
    "m": "Meters",
    "yd": "Yards",
    "cm": "Centimeters",
    "in": "Inches",
    "s": "Seconds",
    "min": "Minutes",
    "h": "Hours",
    ".": "A point: 1.5 is one and a half",
    ",": "A comma: 1,5 is one and a half",
    "dmy": "Day first: 03/04 is 3 April",
    "mdy": "Month first: 03/04 is March 4",
    "ymd": "Year first",
    "create": "Create this client",
    "skip": "Leave these rows out",
}


def describe(job: jobs.StoredJob) -> dict[str, Any]:
    """Return what the page of an import, or of its undo, shows."""
    shown: dict[str, Any] = {**job, "isUnfinished": jobs.is_unfinished(job)}
    if job["kind"] == "undo":
        undone = cast("import_models.UndoResult | None", job["result"])
        removed: Mapping[str, Any] = undone["removed"] if undone else {}
        kept = Counter(each["message"] for each in undone["failed"]) if undone else Counter[str]()
        return shown | {
            "title": "Undo of an import",
            "isDryRun": False,
            "facts": [(_REMOVED[name], count) for name, count in removed.items() if count],
            "questions": [],
            "kinds": [],
            "problems": [(count, "", text, "") for text, count in kept.most_common()],
            "canRun": False,
            "canUndo": False,
        }
    work = cast("import_models.ImportWork", job["work"])
    result = import_models.table_result(job["result"])
    is_dry_run, has_ended = work["isDryRun"], not shown["isUnfinished"]
    # Those that an answer is needed for first.
    names = sorted(result["names"] if result else [], key=lambda each: each["match"] is not None)
    questions = result["questions"] if result else []
    may_create = work.get("mayCreateExercises", True)
    counts: Mapping[str, int] = {**cast("Any", result["created"]), **cast("Any", result)} if result else {}
    reasons = [(each["entry"], each["field"], each["message"]) for each in job["errors"][:_SHOWN_REASONS]]
    groups: dict[tuple[str, str], list[str]] = {}  # the problems of rows by kind
    for error in job["errors"]:
        groups.setdefault((error["field"] or "", error["message"]), []).append(error["entry"])
    most_frequent = sorted(groups.items(), key=lambda each: -len(each[1]))[:_SHOWN_PROBLEMS]
    return shown | {
        "title": f"Import of {work['fileName'] or 'a file'}",
        "isDryRun": is_dry_run,
        "result": result,
        "formatName": _FORMATS[result["format"]] if result and result["format"] else "",
        "facts": [(label, counts[name]) for name, label in _COUNTED.items() if counts.get(name)],
        "isEmpty": not result or not result["imported"],
        "questions": [_question(each, number) for number, each in enumerate(questions)],
        "isChecking": any(each["code"] == "COLUMN" for each in questions),
        "names": [show_name(each, may_create=may_create) for each in names[:MOST_NAMES]],
        "mayCreate": may_create,
        "nameCount": len(names),
        "knownCount": sum(each["match"] is not None for each in names),
        "reasons": [f"{entry}: {field} {text}" if field else f"{entry}: {text}" for entry, field, text in reasons],
        "kinds": [
            (
                kind["count"],
                kind["column"] or "",
                _KINDS.get(kind["code"], kind["code"]),
                _list_some(list(map(str, kind["lines"])), _SHOWN_LINES, kind["count"]),
            )
            for kind in (result.get("problems", ()) if result else ())
        ],
        "problems": [
            (len(entries), field, message, _list_some(entries, _SHOWN_ENTRIES, len(entries)))
            for (field, message), entries in most_frequent
        ],
        "canRun": is_dry_run and job["status"] == "done" and work["fileId"] is not None,
        "canUndo": not is_dry_run and has_ended and result is not None and undoing.has_stored(result),
    }


def _list_some(places: Sequence[str], most: int, count: int) -> str:
    return ", ".join([*places[:most], *(["…"] if count > most else [])])


def is_history(work: import_models.ImportWork) -> bool:
    """Return whether an import is of training history, not of clients or of a company."""
    return "plan" in work and work["plan"]["result"]["format"] != "customers"


def chosen_answer(name: NameInFile) -> str:
    """Return what a name becomes unless another answer is sent: an identifier, `create` or `skip`; empty: nothing."""
    return str(name["match"]["_id"]) if name["match"] is not None else name["answer"] or ""


def report(job: jobs.StoredJob) -> Download:
    """Return the problems of an import as CSV."""
    errors = import_models.list_problems(job["errors"], import_models.table_result(job["result"]))
    rows = [(each.get("line"), each["entry"], each["field"], each["code"], each["message"]) for each in errors]
    content = codecs.BOM_UTF8 + write_rows([("line", "entry", "field", "code", "message"), *rows])

    async def read(start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield content[start:end]

    return Download(CSV, "import-report.csv", read, len(content))


def _question(question: Question, number: int) -> dict[str, Any]:
    named = question.get("name", "")
    if question["code"] == "CUSTOMER" and not named:  # the page has the clients
        message = "Whose history is it?"
        return {"field": "customerId", "isOfColumn": False, "named": "", "message": message, "options": []}
    words = {} if question["code"] == "COLUMN" else _OPTIONS
    labels = question.get("labels") or [words.get(each, each) for each in question["options"]]
    return {
        "field": _FIELDS.get(question["code"], f"{_NAMED.get(question['code'])}.{number}"),
        "isOfColumn": question["code"] == "COLUMN" and "labels" in question,
        "named": named,
        "message": question["message"],
        "options": list(zip(question["options"], labels, strict=True)),
    }


def show_name(name: NameInFile, *, may_create: bool) -> dict[str, Any]:
    """Return a name with the exercises that it may mean."""
    exercises = [each for each in (name["match"], *name["alternatives"]) if each is not None]
    options = [(str(each["_id"]), each["name"]) for each in exercises]
    if may_create:
        options.append((CREATE, f"New exercise: {name['name']}"))
    return {
        "name": name["name"],
        "sets": name["sets"],
        "chosen": chosen_answer(name),
        "options": [*options, (SKIP, "Leave out")],
    }


_LONGEST_NAME = 500
_MAX_ROWS = 1_000  # as many as the numbers of rows in forms tell apart


class NameRow(TypedDict):
    """What becomes of a name in the file: an identifier, `create` or `skip`."""

    name: Annotated[str, Text(max_length=_LONGEST_NAME, trim=False)]
    answer: Annotated[str, Text(max_length=24)]


NameRows: TypeAlias = Annotated[
    list[NameRow], ListOf(fields.Nested(input_of(NameRow)), maximum=_MAX_ROWS), Default(list)
]


class ColumnRow(TypedDict):
    """The heading of the column that has a field."""

    name: Annotated[str, Text(max_length=24)]
    answer: Annotated[str, Text(max_length=_LONGEST_NAME, trim=False)]


class AnswersForm(TypedDict):
    """The answers to the questions of a check, and what the names in the file become."""

    customerId: Annotated[ObjectId | None, Default(None)]
    loadUnit: Annotated[account.LoadUnit | None, Default(None)]
    distanceUnit: Annotated[import_models.DistanceUnit | None, Default(None)]
    durationUnit: Annotated[import_models.DurationUnit | None, Default(None)]
    dateOrder: Annotated[DateOrder | None, Default(None)]
    decimalSign: Annotated[DecimalSign | None, Default(None)]
    names: NameRows
    customers: NameRows
    columns: Annotated[list[ColumnRow], Default(list)]


def with_answers(checked: jobs.StoredJob, form: AnswersForm) -> import_models.ImportAnswers:
    """Return the answers that a check had, completed by those of a form.

    Raises InvalidFields.
    """
    known = cast("import_models.ImportWork", checked["work"])["answers"]
    result = import_models.table_result(checked["result"])
    changed = changed_answers(result["names"] if result else (), form["names"])
    columns = {row["answer"]: row["name"] for row in form["columns"]}  # the fields by heading
    if len(columns) < len(form["columns"]):
        raise invalid_field("columns", "must be another column for each question", code="INVALID_ANSWER")
    if problem := import_models.find_wrong_columns(columns):
        raise invalid_field("columns", problem, code="INVALID_ANSWER")
    return {
        "format": known["format"],
        "customerId": known["customerId"] or form["customerId"],
        "loadUnit": form["loadUnit"] or known["loadUnit"],
        "distanceUnit": form["distanceUnit"] or known["distanceUnit"],
        "durationUnit": form["durationUnit"] or known.get("durationUnit"),
        "dateOrder": form["dateOrder"] or known["dateOrder"],
        "decimalSign": form["decimalSign"] or known.get("decimalSign"),
        "names": {**import_models.by_name(known["names"]), **read_answers(changed)},
        "customers": {
            **import_models.by_name(known["customers"]),
            **read_answers(_by_name(form["customers"]), "customers"),
        },
        "columns": {**{each["heading"]: each["field"] for each in known["columns"]}, **columns},
    }


def changed_answers(names: Sequence[NameInFile], rows: Sequence[NameRow]) -> Mapping[str, str]:
    """Return the answers about names: what was proposed and not changed is none, which would be remembered."""
    proposed = {each["name"]: chosen_answer(each) for each in names}
    return _by_name([row for row in rows if proposed.get(row["name"]) != row["answer"]])


def _by_name(rows: Sequence[NameRow]) -> Mapping[str, str]:
    return {row["name"]: row["answer"] for row in rows}


# --- Settings: export and import of the company -----------------------------------------------------------------------


_transfer = pages.below("/app/settings/transfer")
_LISTED = 10
_STATUSES = {
    "queued": "Waiting",
    "running": "Running",
    "done": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
}
_DELETED_AT_ONCE = 200  # clients that the address of the page which confirms it can name
# Where to delete what belongs to no client.
_LIBRARIES = {
    "exercises": ("Exercises", "/app/exercises"),
    "exerciseOverrides": ("Exercises", "/app/exercises"),
    "programs": ("Programs", "/app/programs"),
    "workoutTemplates": ("Programs", "/app/programs"),
    "forms": ("Forms", "/app/settings/forms"),
    "metricSets": ("Metric sets", "/app/settings/metric-sets"),
}
# What the records of an import are, in the words of the pages.
_NAMES = {
    "exercises": "exercise",
    "forms": "form",
    "programs": "program",
    "notes": "note",
    "messages": "message",
    "conversations": "conversation",
    "customers": "client",
    "workoutBlocks": "workout",
    "exerciseOverrides": "changed shared exercise",
    "metricSets": "metric set",
    "workoutTemplates": "workout template",
    "programAssignments": "assigned program",
    "groupPrograms": "program of a group",
    "attentionDismissals": "dismissed reason",
    "checkIns": "recurring check-in",
    "formResponses": "form response",
    "hiddenDays": "hidden day",
    "metricAssignments": "assigned metric set",
    "metricEntries": "measured value",
    "personalRecords": "personal record",
    "planVersions": "nutrition plan",
    "planCounters": "plan counter",
    "progressPhotos": "photo date",
    "trainingMaxes": "training maximum",
}


class _ImportForm(TypedDict):
    dryRun: Annotated[bool, Default(False)]
    onConflict: Annotated[Literal["error", "update"], Default("error")]


@_transfer.get("", access=owner_session(), template="settings/transfer.html")
async def transfer_page(ctx: Context) -> dict[str, Any]:
    """Downloads of the company's data, a form to import a file, and the latest imports."""
    return {"jobs": [_describe(job) for job in await jobs.list_latest(ctx, "import", _LISTED)]}


def _declare_export(path: str, kind: Literal["archive", "workouts", "customers"]) -> None:
    """Declare the download of everything, of the logged sets of all clients, or of all clients, archived ones too."""

    @_transfer.get(path, access=owner_session(), template="", request_class="bulk")
    async def export(ctx: Context) -> Download:
        return await company_export.export(ctx, kind)


_declare_export("/company.zip", "archive")
_declare_export("/workouts.csv", "workouts")
_declare_export("/clients.csv", "customers")


@_transfer.post(
    "",
    access=owner_session(),
    form=MultipartBody("file", (ZIP, CSV, XLSX), _ImportForm, size_limit="import", file_required=True),
    on=transfer_page,
)
async def import_file(ctx: Context, form: _ImportForm, file: StoredFile) -> Redirect:
    """Begin to import a file, or to check it."""
    job = await company_import.begin(
        ctx,
        file,
        dry_run=form["dryRun"],
        on_conflict=form["onConflict"],
        keeps_file=form["dryRun"] and file.content_type != ZIP,
    )
    return Redirect(f"{_transfer.prefix}/{job['_id']}")


@_transfer.get("/{jobId}", access=owner_session(), template="settings/import.html")
async def import_page(ctx: Context, job_id: ObjectId) -> dict[str, Any] | Redirect:
    """The progress of an import, its problems, and its undo; imports of training history have a page of their own."""
    job = await jobs.get_complete(ctx, job_id)
    if job["kind"] != "import":
        raise NotFound("job")
    work = cast("import_models.ImportWork", job["work"])
    if is_history(work):
        return Redirect(f"/app/import/{job_id}")
    has_ended = not jobs.is_unfinished(job)
    clients = await company_import.list_clients(ctx, job_id) if has_ended and not work["isDryRun"] else []
    return {
        "job": _describe(job),
        "checked": describe(job),
        "client_count": len(clients),
        "clients": clients[:_DELETED_AT_ONCE],
        "added_to": dict(_LIBRARIES[name] for name in work["imported"] if name in _LIBRARIES),
        "changed_known": work.get("onConflict") == "update",
        "took_over_settings": work["contentType"] == ZIP,
    }


async def _run_checked(ctx: Context, job_id: ObjectId, form: AnswersForm) -> jobs.StoredJob:
    """Import a file that was checked, with the answers of the form."""
    begin = company_import.begin_checked if ctx.caller.is_coach else company_import.begin_own_checked
    return await begin(ctx, job_id, with_answers(await jobs.get_complete(ctx, job_id), form))


_run: dict[str, Any] = {"form": AnswersForm, "locks": "customer", "has_table": True}
_started: dict[str, Any] = {"to": f"{_transfer.prefix}/{{_id}}", "access": owner_session(), "on": import_page}
_transfer.act("/{jobId}/run", "run_checked_import", _run_checked, **_started, **_run)


@_transfer.post("/{jobId}/cancel", access=owner_session(), on=import_page)
async def cancel_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Cancel an import."""
    job = await background_jobs.cancel_job(ctx, job_id)
    message = "Cancelled." if job["status"] == "cancelled" else "It had ended already."
    return Redirect(f"{_transfer.prefix}/{job_id}", message)


def _describe(job: jobs.StoredJob) -> dict[str, Any]:
    work = cast("import_models.ImportWork", job["work"])
    imported = work["imported"].items()
    return {
        **job,
        "fileName": work["fileName"] or "Import",
        "isDryRun": work["isDryRun"],
        "statusName": _STATUSES[job["status"]],
        "isUnfinished": jobs.is_unfinished(job),
        "imported": [quantity(count, _NAMES.get(name, name)) for name, count in imported],
        "failed": work["failed"],
    }


# --- Import of training history, by coaches and by clients: a file is checked, questions are answered, it is imported


_import, _own_import = pages.below("/app/import"), pages.below("/train/settings/import")
_MOST_CLIENTS = 1_000


class _Client(TypedDict):
    customerId: Annotated[ObjectId | None, Default(None)]


@_import.get("", access=coach(CUSTOMERS.EDIT), template="imports/upload.html")
async def import_history_page(ctx: Context, query: _Client) -> dict[str, Any]:
    """A form to upload the training history of a client, or of several."""
    return {"customer": await _find_client(ctx, query["customerId"])}


@_import.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    form=MultipartBody("file", (CSV, XLSX), _Client, size_limit="import", file_required=True),
    on=import_history_page,
)
async def check_history(ctx: Context, form: _Client, file: StoredFile, query: _Client) -> Redirect:
    """Begin to check a file."""
    del query
    answers = import_models.NO_ANSWERS | {"customerId": form["customerId"]}
    job = await company_import.begin(ctx, file, dry_run=True, answers=answers, keeps_file=True)
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.get("/{jobId}", access=coach(CUSTOMERS.EDIT), template="imports/job.html")
async def history_import_page(ctx: Context, job_id: ObjectId) -> dict[str, Any] | Redirect:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job = await jobs.get_complete(ctx, job_id)
    is_undo, work = job["kind"] == "undo", cast("import_models.ImportWork", job["work"])
    if not is_undo and (job["kind"] != "import" or (job["status"] == "done" and not is_history(work))):
        return Redirect(f"/app/settings/transfer/{job_id}")
    shown, answers = describe(job), None if is_undo else work.get("answers")
    asks_for_client = any(each["field"] == "customerId" for each in shown["questions"])
    names = customers.distinct_names(await customers.list_identities(ctx)) if asks_for_client else {}
    return {
        "job": shown,
        "clients": name_options(names)[:_MOST_CLIENTS],
        "customer": await _find_client(ctx, answers["customerId"] if answers else None),
    }


_act = partial(_import.act, access=coach(CUSTOMERS.EDIT), on=history_import_page, to=f"{_import.prefix}/{{_id}}")
_act("/{jobId}/run", "run_history_import", _run_checked, **_run)
_act("/{jobId}/cancel", "cancel_history_import", background_jobs.cancel_job)
_act("/{jobId}/undo", "undo_history_import", undoing.begin)


@_import.get("/{jobId}/report.csv", access=coach(CUSTOMERS.EDIT), template="")
async def download_import_report(ctx: Context, job_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return report(await jobs.get_complete(ctx, job_id))


async def _find_client(ctx: Context, customer_id: ObjectId | None) -> NamedCustomer | None:
    return None if customer_id is None else await customers.get_visible_reference(ctx, customer_id)


@_own_import.get("", access=customer(), template="train/settings/import.html")
async def own_import_page(ctx: Context) -> dict[str, Any]:
    """A form to upload the own training history."""
    return {"may_import": (await account.get_account(ctx))["clientsMayImport"]}


_own_import.act(
    "",
    "check_own_history",
    partial(company_import.begin_own, answers=import_models.NO_ANSWERS, dry_run=True, keeps_file=True),
    access=customer(),
    on=own_import_page,
    to=f"{_own_import.prefix}/{{_id}}",
    form=MultipartBody("file", (CSV, XLSX), size_limit="import", file_required=True),
)


@_own_import.get("/{importId}", access=customer(), template="train/settings/import_job.html")
async def own_history_page(ctx: Context, import_id: ObjectId) -> dict[str, Any]:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job, day = await jobs.get_complete(ctx, import_id), await own_today.get_today(ctx, {})
    workouts = [block["_id"] for block in day["blocks"] if not block["isCompleted"] and not block["isRest"]]
    return {
        "job": describe(job),
        "next_path": workout_path(workouts[0]) if workouts else "/train",
    }


_act_own = partial(_own_import.act, access=customer(), on=own_history_page, to=f"{_own_import.prefix}/{{_id}}")
_act_own("/{importId}/run", "run_own_import", _run_checked, form=AnswersForm, has_table=True)
_act_own("/{importId}/cancel", "cancel_own_import", background_jobs.cancel_job)
_act_own("/{importId}/undo", "undo_own_import", undoing.begin)


@_own_import.get("/{importId}/report.csv", access=customer(), template="")
async def download_own_report(ctx: Context, import_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return report(await jobs.get_complete(ctx, import_id))
