"""Import of training history, by coaches and by clients: a file is checked, questions are answered, it is imported."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX
from coaching_service.integrations import own_import
from coaching_service.integrations.background_jobs import service
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import JobWork
from coaching_service.integrations.company_import import checked_files
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import undoing
from coaching_service.integrations.history_import.models import NO_ANSWERS, ImportAnswers
from coaching_service.people.account import service as account
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.listing import distinct_names
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.progress import own_today
from coaching_service.web.formatting import name_options
from coaching_service.web.page_queries import KeywordQuery
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views import import_forms
from coaching_service.web.views.import_forms import AnswersForm, search_exercises, with_answers
from coaching_service.web.views.train.layout import workout_path

pages = Pages("")
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
    form=MultipartBody("file", (CSV, XLSX), _Client, size_limit="import", file_required=True),
    on=import_history_page,
)
async def check_history(ctx: Context, form: _Client, file: StoredFile, query: _Client) -> Redirect:
    """Begin to check a file."""
    del query
    answers: ImportAnswers = {**NO_ANSWERS, "customerId": form["customerId"]}
    job = await company_import.begin(ctx, file, dry_run=True, answers=answers, keeps_file=True)
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.get("/{jobId}", access=coach(CUSTOMERS.EDIT), template="imports/job.html")
async def history_import_page(ctx: Context, job_id: ObjectId) -> dict[str, Any] | Redirect:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job = await _get_job(ctx, job_id)
    if import_forms.is_other_import(job):
        return Redirect(f"/app/settings/transfer/{job_id}")
    shown = import_forms.describe(job)
    asks_for_client = any(each["field"] == "customerId" for each in shown["questions"])
    return {
        "job": shown,
        "clients": await _list_clients(ctx) if asks_for_client else [],
        "customer": await _find_client(ctx, import_forms.client_of(job)),
    }


@_import.post("/{jobId}/run", access=coach(CUSTOMERS.EDIT), on=history_import_page, has_table=True)
async def run_history_import(ctx: Context, job_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a file that was checked, with the answers of the form."""
    job = await checked_files.begin(ctx, job_id, with_answers(await _get_job(ctx, job_id), form))
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.post("/{jobId}/cancel", access=coach(CUSTOMERS.EDIT), on=history_import_page)
async def cancel_history_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Cancel a check or an import."""
    await background_jobs.cancel_any(ctx, job_id)
    return Redirect(f"{_import.prefix}/{job_id}")


@_import.post("/{jobId}/undo", access=coach(CUSTOMERS.EDIT), on=history_import_page)
async def undo_history_import(ctx: Context, job_id: ObjectId) -> Redirect:
    """Undo an import."""
    job = await undoing.begin(ctx, job_id)
    return Redirect(f"{_import.prefix}/{job['_id']}")


@_import.get("/{jobId}/report.csv", access=coach(CUSTOMERS.EDIT), template="")
async def download_import_report(ctx: Context, job_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return import_forms.report(await _get_job(ctx, job_id))


@_import.get("/{jobId}/exercises", access=coach(CUSTOMERS.EDIT), template="imports/exercises.html")
async def import_exercises_page(ctx: Context, job_id: ObjectId, query: KeywordQuery) -> dict[str, Any]:
    """The exercises that a name in the file may mean."""
    await service.require_access(ctx, job_id, writes=False)
    return {"layout": "layout.html", "query": query, "exercises": await search_exercises(ctx, query)}


async def _list_clients(ctx: Context) -> list[tuple[str, str]]:
    names = distinct_names(await customers.list_identities(ctx))
    return name_options(names)[:_MOST_CLIENTS]


async def _get_job(ctx: Context, job_id: ObjectId) -> JobWork:
    await service.require_access(ctx, job_id, writes=False)
    return await background_jobs.get_with_work(ctx, job_id)


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
    job = await own_import.begin(ctx, file, NO_ANSWERS, dry_run=True, keeps_file=True)
    return Redirect(f"{_own_import.prefix}/{job['_id']}")


@_own_import.get("/{importId}", access=customer(), template="train/settings/import_job.html")
async def own_history_page(ctx: Context, import_id: ObjectId) -> dict[str, Any]:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job, day = await own_import.get_with_work(ctx, import_id), await own_today.get_today(ctx)
    workouts = [block["_id"] for block in day["blocks"] if not block["isCompleted"] and not block["isRest"]]
    return {
        "job": import_forms.describe(job),
        "next_path": workout_path(workouts[0]) if workouts else "/train",
    }


@_own_import.post("/{importId}/run", access=customer(), on=own_history_page, has_table=True)
async def run_own_import(ctx: Context, import_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a file that was checked, with the answers of the form."""
    answers = with_answers(await own_import.get_with_work(ctx, import_id), form)
    job = await own_import.begin_checked(ctx, import_id, answers)
    return Redirect(f"{_own_import.prefix}/{job['_id']}")


@_own_import.post("/{importId}/cancel", access=customer(), on=own_history_page)
async def cancel_own_import(ctx: Context, import_id: ObjectId) -> Redirect:
    """Cancel a check or an import."""
    await own_import.cancel(ctx, import_id)
    return Redirect(f"{_own_import.prefix}/{import_id}")


@_own_import.post("/{importId}/undo", access=customer(), on=own_history_page)
async def undo_own_import(ctx: Context, import_id: ObjectId) -> Redirect:
    """Undo an import."""
    job = await own_import.undo(ctx, import_id)
    return Redirect(f"{_own_import.prefix}/{job['_id']}")


@_own_import.get("/{importId}/report.csv", access=customer(), template="")
async def download_own_report(ctx: Context, import_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return import_forms.report(await own_import.get_with_work(ctx, import_id))


@_own_import.get("/{importId}/exercises", access=customer(), template="imports/exercises.html")
async def own_import_exercises_page(ctx: Context, import_id: ObjectId, query: KeywordQuery) -> dict[str, Any]:
    """The exercises that a name in the file may mean."""
    await own_import.get(ctx, import_id)
    return {"layout": "train/layout.html", "query": query, "exercises": await search_exercises(ctx, query)}
