"""Settings: export and import of the company, and import of training history by coaches and clients."""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core.auth import CUSTOMERS, coach, customer, owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX, ZIP
from coaching_service.core.text import write_rows
from coaching_service.core.validation import ListOf, Text
from coaching_service.integrations import background_jobs, company_export
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_files.tables import ProblemKind, Question
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


class ShownQuestion(TypedDict):
    """A question with the field of the form that answers it; `named`: the name that it is about.

    `isOfColumn`: it asks for the field of a column, not for the column of a field.
    """

    field: str
    isOfColumn: bool
    named: str
    message: str
    options: list[tuple[str, str]]


class ShownName(TypedDict):
    """A name of an exercise with what it may become, and what is chosen."""

    name: str
    sets: int
    chosen: str
    options: list[tuple[str, str]]


class ShownProblem(TypedDict):
    """A kind of problem: how many rows have it, and where the first are."""

    count: int
    field: str
    message: str
    where: str


def describe(job: jobs.StoredJob) -> dict[str, Any]:
    """Return what the page of an import, or of its undo, shows."""
    if job["kind"] == "undo":
        return _describe_undo(job)
    work = cast("import_models.ImportWork", job["work"])
    result = import_models.table_result(job["result"])
    has_ended = not jobs.is_unfinished(job)
    is_dry_run = work["isDryRun"]
    # Those that an answer is needed for first.
    names = sorted([] if result is None else result["names"], key=lambda each: each["match"] is not None)
    may_create = work.get("mayCreateExercises", True)
    return {
        **job,
        "title": f"Import of {work['fileName'] or 'a file'}",
        "isDryRun": is_dry_run,
        "isUnfinished": not has_ended,
        "result": result,
        "formatName": "" if result is None or result["format"] is None else _FORMATS[result["format"]],
        "facts": [] if result is None else _facts(result),
        "isEmpty": result is None or not result["imported"],
        "questions": []
        if result is None
        else [_question(each, number) for number, each in enumerate(result["questions"])],
        "isChecking": result is not None and any(each["code"] == "COLUMN" for each in result["questions"]),
        "names": [show_name(each, may_create=may_create) for each in names[:MOST_NAMES]],
        "mayCreate": may_create,
        "nameCount": len(names),
        "knownCount": sum(each["match"] is not None for each in names),
        "reasons": [_sentence(each) for each in job["errors"][:_SHOWN_REASONS]],
        "kinds": [] if result is None else [_show_kind(each) for each in result.get("problems", ())],
        "problems": _group(job["errors"]),
        "canRun": is_dry_run and job["status"] == "done" and work["fileId"] is not None,
        "canUndo": not is_dry_run and has_ended and result is not None and undoing.has_stored(result),
    }


def _describe_undo(job: jobs.StoredJob) -> dict[str, Any]:
    result = cast("import_models.UndoResult | None", job["result"])
    removed: Mapping[str, Any] = {} if result is None else result["removed"]
    return {
        **job,
        "title": "Undo of an import",
        "isDryRun": False,
        "isUnfinished": jobs.is_unfinished(job),
        "facts": [(_REMOVED[name], count) for name, count in removed.items() if count],
        "isEmpty": not removed,
        "questions": [],
        "names": [],
        "kinds": [],
        "problems": _group_remaining([] if result is None else result["failed"]),
        "canRun": False,
        "canUndo": False,
    }


def _group_remaining(failed: Sequence[import_models.KeptDocument]) -> list[ShownProblem]:
    counts = Counter(each["message"] for each in failed)
    return [{"count": count, "field": "", "message": message, "where": ""} for message, count in counts.most_common()]


def _group(errors: Sequence[jobs.JobError]) -> list[ShownProblem]:
    """Return the problems of rows by kind, the most frequent first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in errors:
        groups.setdefault((each["field"] or "", each["message"]), []).append(each["entry"])
    problems: list[ShownProblem] = [
        {
            "count": len(entries),
            "field": field,
            "message": message,
            "where": ", ".join(entries[:_SHOWN_ENTRIES]) + (", …" if len(entries) > _SHOWN_ENTRIES else ""),
        }
        for (field, message), entries in groups.items()
    ]
    return sorted(problems, key=lambda each: -each["count"])[:_SHOWN_PROBLEMS]


def _show_kind(kind: ProblemKind) -> ShownProblem:
    lines = ", ".join(map(str, kind["lines"][:_SHOWN_LINES]))
    return {
        "count": kind["count"],
        "field": kind["column"] or "",
        "message": _KINDS.get(kind["code"], kind["code"]),
        "where": f"{lines}, …" if kind["count"] > _SHOWN_LINES else lines,
    }


def is_history(work: import_models.ImportWork) -> bool:
    """Return whether an import is of training history, not of clients or of a company."""
    return "plan" in work and work["plan"]["result"]["format"] != "customers"


def is_other_import(job: jobs.StoredJob) -> bool:
    """Return whether a job has ended that turned out not to be of training history."""
    if job["kind"] == "undo":
        return False
    return job["kind"] != "import" or (
        job["status"] == "done" and not is_history(cast("import_models.ImportWork", job["work"]))
    )


def chosen_answer(name: NameInFile) -> str:
    """Return what a name becomes unless another answer is sent: an identifier, `create` or `skip`; empty: nothing."""
    return str(name["match"]["_id"]) if name["match"] is not None else name["answer"] or ""


def client_of(job: jobs.StoredJob) -> ObjectId | None:
    """Return the client whose history an import is, if it is of one."""
    answers = cast("import_models.ImportWork", job["work"]).get("answers") if job["kind"] == "import" else None
    return None if answers is None else answers["customerId"]


def report(job: jobs.StoredJob) -> Download:
    """Return the problems of an import as CSV."""
    errors = import_models.list_problems(job["errors"], import_models.table_result(job["result"]))
    rows = [(each.get("line"), each["entry"], each["field"], each["code"], each["message"]) for each in errors]
    content = codecs.BOM_UTF8 + write_rows([("line", "entry", "field", "code", "message"), *rows])

    async def read(start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield content[start:end]

    return Download(CSV, "import-report.csv", read, len(content))


def _facts(result: import_models.HistoryResult) -> list[tuple[str, int]]:
    created = result["created"]
    counts = (
        ("rows", result["rows"]),
        ("workouts", created["sessions"]),
        ("sets", created["sets"]),
        ("measurements", created.get("values", 0)),
        ("new exercises", created["exercises"]),
        ("new clients", created["customers"]),
        ("rows left out", result["reported"]),
    )
    return [(label, count) for label, count in counts if count]


def _question(question: Question, number: int) -> ShownQuestion:
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


def show_name(name: NameInFile, *, may_create: bool) -> ShownName:
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


def _sentence(error: jobs.JobError) -> str:
    field = f"{error['field']} " if error["field"] else ""
    return f"{error['entry']}: {field}{error['message']}"


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
        "columns": {**{each["heading"]: each["field"] for each in known["columns"]}, **_columns_of(form["columns"])},
    }


def changed_answers(names: Sequence[NameInFile], rows: Sequence[NameRow]) -> Mapping[str, str]:
    """Return the answers about names: what was proposed and not changed is none, which would be remembered."""
    proposed = {each["name"]: chosen_answer(each) for each in names}
    return _by_name([row for row in rows if proposed.get(row["name"]) != row["answer"]])


def _columns_of(rows: Sequence[ColumnRow]) -> Mapping[str, str]:
    """Return the fields by heading. Raises InvalidFields for a field that does not exist, or a heading with two."""
    columns = {row["answer"]: row["name"] for row in rows}
    if len(columns) < len(rows):
        raise invalid_field("columns", "must be another column for each question", code="INVALID_ANSWER")
    if problem := import_models.find_wrong_columns(columns):
        raise invalid_field("columns", problem, code="INVALID_ANSWER")
    return columns


def _by_name(rows: Sequence[NameRow]) -> Mapping[str, str]:
    return {row["name"]: row["answer"] for row in rows}


# --- Settings: export and import of the company -----------------------------------------------------------------------


_transfer = pages.below("/app/settings/transfer")
_PATH = "/app/settings/transfer"
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


@_transfer.get("/company.zip", access=owner_session(), template="", request_class="bulk")
async def export_company(ctx: Context) -> Download:
    """Download everything."""
    return await company_export.export(ctx, "archive")


@_transfer.get("/workouts.csv", access=owner_session(), template="", request_class="bulk")
async def export_workouts(ctx: Context) -> Download:
    """Download the logged sets of all clients."""
    return await company_export.export(ctx, "workouts")


@_transfer.get("/clients.csv", access=owner_session(), template="", request_class="bulk")
async def export_customers(ctx: Context) -> Download:
    """Download all clients, archived ones too."""
    return await company_export.export(ctx, "customers")


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
    return Redirect(f"{_PATH}/{job['_id']}")


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


@_transfer.post("/{jobId}/run", access=owner_session(), locks="customer", on=import_page, has_table=True)
async def run_checked_import(ctx: Context, job_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a list of clients that was checked, with the answers of the form."""
    answers = with_answers(await jobs.get_complete(ctx, job_id), form)
    job = await company_import.begin_checked(ctx, job_id, answers)
    return Redirect(f"{_PATH}/{job['_id']}")


@_transfer.post("/{jobId}/cancel", access=owner_session(), on=import_page)
async def cancel_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Cancel an import."""
    job = await background_jobs.cancel(ctx, job_id)
    message = "Cancelled." if job["status"] == "cancelled" else "It had ended already."
    return Redirect(f"{_PATH}/{job_id}", message)


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
    answers: import_models.ImportAnswers = {
        **import_models.NO_ANSWERS,
        "customerId": form["customerId"],
    }
    job = await company_import.begin(ctx, file, dry_run=True, answers=answers, keeps_file=True)
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.get("/{jobId}", access=coach(CUSTOMERS.EDIT), template="imports/job.html")
async def history_import_page(ctx: Context, job_id: ObjectId) -> dict[str, Any] | Redirect:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job = await jobs.get_complete(ctx, job_id)
    if is_other_import(job):
        return Redirect(f"/app/settings/transfer/{job_id}")
    shown = describe(job)
    asks_for_client = any(each["field"] == "customerId" for each in shown["questions"])
    return {
        "job": shown,
        "clients": await _list_clients(ctx) if asks_for_client else [],
        "customer": await _find_client(ctx, client_of(job)),
    }


@_import.post("/{jobId}/run", access=coach(CUSTOMERS.EDIT), locks="customer", on=history_import_page, has_table=True)
async def run_history_import(ctx: Context, job_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a file that was checked, with the answers of the form."""
    job = await company_import.begin_checked(ctx, job_id, with_answers(await jobs.get_complete(ctx, job_id), form))
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.post("/{jobId}/cancel", access=coach(CUSTOMERS.EDIT), on=history_import_page)
async def cancel_history_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Cancel a check or an import."""
    await background_jobs.cancel(ctx, job_id)
    return Redirect(f"{_import.prefix}/{job_id}")


@_import.post("/{jobId}/undo", access=coach(CUSTOMERS.EDIT), on=history_import_page)
async def undo_history_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Undo an import."""
    job = await undoing.begin(ctx, job_id)
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.get("/{jobId}/report.csv", access=coach(CUSTOMERS.EDIT), template="")
async def download_import_report(ctx: Context, job_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return report(await jobs.get_complete(ctx, job_id))


async def _list_clients(ctx: Context) -> list[tuple[str, str]]:
    names = customers.distinct_names(await customers.list_identities(ctx))
    return name_options(names)[:_MOST_CLIENTS]


async def _find_client(ctx: Context, customer_id: ObjectId | None) -> NamedCustomer | None:
    return None if customer_id is None else await customers.get_visible_reference(ctx, customer_id)


@_own_import.get("", access=customer(), template="train/settings/import.html")
async def own_import_page(ctx: Context) -> dict[str, Any]:
    """A form to upload the own training history."""
    return {"may_import": (await account.get(ctx))["clientsMayImport"]}


@_own_import.post(
    "",
    access=customer(),
    form=MultipartBody("file", (CSV, XLSX), size_limit="import", file_required=True),
    on=own_import_page,
)
async def check_own_history(ctx: Context, file: StoredFile) -> Redirect:
    """Begin to check a file."""
    job = await company_import.begin_own(ctx, file, import_models.NO_ANSWERS, dry_run=True, keeps_file=True)
    return Redirect(f"{_own_import.prefix}/{job['_id']}")


@_own_import.get("/{importId}", access=customer(), template="train/settings/import_job.html")
async def own_history_page(ctx: Context, import_id: ObjectId) -> dict[str, Any]:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job, day = await jobs.get_complete(ctx, import_id), await own_today.get_today(ctx)
    workouts = [block["_id"] for block in day["blocks"] if not block["isCompleted"] and not block["isRest"]]
    return {
        "job": describe(job),
        "next_path": workout_path(workouts[0]) if workouts else "/train",
    }


@_own_import.post("/{importId}/run", access=customer(), on=own_history_page, has_table=True)
async def run_own_import(ctx: Context, import_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a file that was checked, with the answers of the form."""
    answers = with_answers(await jobs.get_complete(ctx, import_id), form)
    job = await company_import.begin_own_checked(ctx, import_id, answers)
    return Redirect(f"{_own_import.prefix}/{job['_id']}")


@_own_import.post("/{importId}/cancel", access=customer(), on=own_history_page)
async def cancel_own_import(ctx: Context, import_id: ObjectId) -> Redirect:
    """Cancel a check or an import."""
    await background_jobs.cancel(ctx, import_id)
    return Redirect(f"{_own_import.prefix}/{import_id}")


@_own_import.post("/{importId}/undo", access=customer(), on=own_history_page)
async def undo_own_import(ctx: Context, import_id: ObjectId) -> Redirect:
    """Undo an import."""
    job = await undoing.begin(ctx, import_id)
    return Redirect(f"{_own_import.prefix}/{job['_id']}")


@_own_import.get("/{importId}/report.csv", access=customer(), template="")
async def download_own_report(ctx: Context, import_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return report(await jobs.get_complete(ctx, import_id))
