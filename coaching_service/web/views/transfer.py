"""Settings: export and import of the company."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict, cast

from coaching_service.core.auth.access import owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX, ZIP
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import ImportWork, JobWork
from coaching_service.integrations.company_export import service as company_export
from coaching_service.integrations.company_import import checked_files
from coaching_service.integrations.company_import import service as company_import
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.import_forms import AnswersForm, describe, is_history, with_answers

pages = Pages("/app/settings/transfer")
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


@pages.get("", access=owner_session(), template="settings/transfer.html")
async def transfer_page(ctx: Context) -> dict[str, Any]:
    """Downloads of the company's data, a form to import a file, and the latest imports."""
    jobs = await background_jobs.list_latest(ctx, "import", _LISTED)
    return {"jobs": [_describe(job) for job in jobs]}


@pages.get("/company.zip", access=owner_session(), template="", request_class="bulk")
async def export_company(ctx: Context) -> Download:
    """Download everything."""
    return await company_export.export(ctx, "archive")


@pages.get("/workouts.csv", access=owner_session(), template="", request_class="bulk")
async def export_workouts(ctx: Context) -> Download:
    """Download the logged sets of all clients."""
    return await company_export.export(ctx, "workouts")


@pages.get("/clients.csv", access=owner_session(), template="", request_class="bulk")
async def export_customers(ctx: Context) -> Download:
    """Download all clients, archived ones too."""
    return await company_export.export(ctx, "customers")


@pages.post(
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


@pages.get("/{jobId}", access=owner_session(), template="settings/import.html")
async def import_page(ctx: Context, job_id: ObjectId) -> dict[str, Any] | Redirect:
    """The progress of an import, its problems, and its undo; imports of training history have a page of their own."""
    job = await background_jobs.get_with_work(ctx, job_id)
    work = cast("ImportWork", job["work"])
    if is_history(work):
        return Redirect(f"/app/import/{job_id}")
    has_ended = job["status"] not in ("queued", "running")
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


@pages.post("/{jobId}/run", access=owner_session(), on=import_page, has_table=True)
async def run_checked_import(ctx: Context, job_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a list of clients that was checked, with the answers of the form."""
    answers = with_answers(await background_jobs.get_with_work(ctx, job_id), form)
    job = await checked_files.begin(ctx, job_id, answers)
    return Redirect(f"{_PATH}/{job['_id']}")


@pages.post("/{jobId}/cancel", access=owner_session(), on=import_page)
async def cancel_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Cancel an import."""
    job = await background_jobs.cancel(ctx, job_id)
    message = "Cancelled." if job["status"] == "cancelled" else "It had ended already."
    return Redirect(f"{_PATH}/{job_id}", message)


def _describe(job: JobWork) -> dict[str, Any]:
    work = cast("ImportWork", job["work"])
    imported = work["imported"].items()
    return {
        **job,
        "fileName": work["fileName"] or "Import",
        "isDryRun": work["isDryRun"],
        "statusName": _STATUSES[job["status"]],
        "isUnfinished": job["status"] in ("queued", "running"),
        "imported": [quantity(count, _NAMES.get(name, name)) for name, count in imported],
        "failed": work["failed"],
    }
