"""A client's own import: a file of another application is checked, questions are answered, and it is imported."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, XLSX
from coaching_service.integrations.history_import.models import NO_ANSWERS
from coaching_service.integrations.own_import import service as own_import
from coaching_service.people.account import service as account
from coaching_service.progress.own_today import service as own_today
from coaching_service.web.page_queries import KeywordQuery
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views import import_forms
from coaching_service.web.views.import_forms import AnswersForm, search_exercises, with_answers
from coaching_service.web.views.train.layout import workout_path

pages = Pages("/train/settings/import")
_PATH = "/train/settings/import"


@pages.get("", access=customer(), template="train/settings/import.html")
async def own_import_page(ctx: Context) -> dict[str, Any]:
    """A form to upload the own training history."""
    return {"may_import": (await account.get(ctx))["clientsMayImport"]}


@pages.post(
    "",
    access=customer(),
    form=MultipartBody("file", (CSV, XLSX), size_limit="import", file_required=True),
    on=own_import_page,
)
async def check_own_history(ctx: Context, file: StoredFile) -> Redirect:
    """Begin to check a file."""
    job = await own_import.begin(ctx, file, NO_ANSWERS, dry_run=True, keeps_file=True)
    return Redirect(f"{_PATH}/{job['_id']}")


@pages.get("/{importId}", access=customer(), template="train/settings/import_job.html")
async def own_history_page(ctx: Context, import_id: ObjectId) -> dict[str, Any]:
    """What a file has, its questions and names; then the progress of its import, and what it has imported."""
    job, day = await own_import.get_with_work(ctx, import_id), await own_today.get_today(ctx)
    workouts = [block["_id"] for block in day["blocks"] if not block["isCompleted"] and not block["isRest"]]
    return {
        "job": import_forms.describe(job),
        "next_path": workout_path(workouts[0]) if workouts else "/train",
    }


@pages.post("/{importId}/run", access=customer(), form=AnswersForm, on=own_history_page, has_table=True)
async def run_own_import(ctx: Context, import_id: ObjectId, form: AnswersForm) -> Redirect:
    """Import a file that was checked, with the answers of the form."""
    answers = with_answers(await own_import.get_with_work(ctx, import_id), form)
    job = await own_import.begin_checked(ctx, import_id, answers)
    return Redirect(f"{_PATH}/{job['_id']}")


@pages.post("/{importId}/cancel", access=customer(), on=own_history_page)
async def cancel_own_import(ctx: Context, import_id: ObjectId) -> Redirect:
    """Cancel a check or an import."""
    await own_import.cancel(ctx, import_id)
    return Redirect(f"{_PATH}/{import_id}")


@pages.post("/{importId}/undo", access=customer(), on=own_history_page)
async def undo_own_import(ctx: Context, import_id: ObjectId) -> Redirect:
    """Undo an import."""
    job = await own_import.undo(ctx, import_id)
    return Redirect(f"{_PATH}/{job['_id']}")


@pages.get("/{importId}/report.csv", access=customer(), template="")
async def download_own_report(ctx: Context, import_id: ObjectId) -> Download:
    """Download the rows that were not imported, and why."""
    return import_forms.report(await own_import.get_with_work(ctx, import_id))


@pages.get("/{importId}/exercises", access=customer(), query=KeywordQuery, template="imports/exercises.html")
async def own_import_exercises_page(ctx: Context, import_id: ObjectId, query: KeywordQuery) -> dict[str, Any]:
    """The exercises that a name in the file may mean."""
    await own_import.get(ctx, import_id)
    return {"layout": "train/layout.html", "query": query, "exercises": await search_exercises(ctx, query)}
