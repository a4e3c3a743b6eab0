"""The history of a client and of the company: what changed, by whom and through which interface, with Undo."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, cast

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import Interface
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.change_descriptions import describe_documents
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.assistants import service as assistants
from coaching_service.people.changes import service as changes
from coaching_service.people.changes import undo
from coaching_service.people.changes.models import PLACES, ChangeDetails, ChangeSummary
from coaching_service.people.customers import service as customers
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.formatting import record_name
from coaching_service.web.page_queries import PartQuery, ReturnTo, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.bulk_jobs import redirect_after_undo
from coaching_service.web.views.customer_layout import customer_path, load_header
from coaching_service.web.views.operation_names import describe_operation

pages = Pages("/app")
_OF_CLIENT = "/customers/{customerId}/history"
_OF_COMPANY = "/settings/history"
COMPANY_PATH = f"/app{_OF_COMPANY}"
_PAGE_SIZE = 30
_MAX_NAMED = 10  # workouts whose present names are read for one change
_VIA: dict[Interface, str] = {
    "session": "Web application",
    "apiKey": "API key",
    "assistant": "Assistant",
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


class _HistoryQuery(PartQuery):
    via: Interface | None


class _UndoForm(ReturnTo):
    """`all`: every change of the bulk operation."""

    all: Annotated[bool, Default(False)]


@pages.get(_OF_CLIENT, access=coach(CUSTOMERS.VIEW), template="history/list.html")
async def customer_history_page(ctx: Context, customer_id: ObjectId, query: _HistoryQuery) -> dict[str, Any]:
    """The changes of a client, newest first."""
    customer, path = await load_header(ctx, customer_id), customer_path(customer_id, "/history")
    variables = await list_changes(ctx, path, query, customer_id=customer_id, via=query["via"])
    return {**variables, "customer": customer, "layout": "customer/layout.html"}


@pages.get(_OF_COMPANY, access=coach(CUSTOMERS.VIEW), template="history/list.html")
async def history_page(ctx: Context, query: _HistoryQuery) -> dict[str, Any]:
    """The changes of the company that the caller may see, newest first."""
    variables = await list_changes(ctx, COMPANY_PATH, query, via=query["via"])
    return variables | {"layout": "settings/layout.html"}


@pages.get(f"{_OF_CLIENT}/{{changeId}}", access=coach(CUSTOMERS.VIEW), template="history/change.html")
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


@pages.get(f"{_OF_COMPANY}/{{changeId}}", access=coach(CUSTOMERS.VIEW), template="history/change.html")
async def change_page(ctx: Context, change_id: ObjectId) -> dict[str, Any]:
    """A change with the values before and after."""
    variables = await _read_change(ctx, change_id)
    return variables | {"history_path": COMPANY_PATH, "layout": "settings/layout.html"}


_undo_form = partial(pages.post, access=coach(CUSTOMERS.VIEW), form=_UndoForm, request_class="bulk", idempotent=True)


@_undo_form(f"{_OF_CLIENT}/{{changeId}}/undo", on=customer_change_page)
async def undo_customer_change(ctx: Context, customer_id: ObjectId, change_id: ObjectId, form: _UndoForm) -> Redirect:
    """Undo a change of a client, or all changes of its bulk operation."""
    return await _undo(ctx, change_id, form, customer_path(customer_id, "/history"), customer_id)


@_undo_form(f"{_OF_COMPANY}/{{changeId}}/undo", on=change_page)
async def undo_change(ctx: Context, change_id: ObjectId, form: _UndoForm) -> Redirect:
    """Undo a change, or all changes of its bulk operation."""
    return await _undo(ctx, change_id, form, COMPANY_PATH, None)


async def _undo(
    ctx: Context, change_id: ObjectId, form: _UndoForm, history_path: str, customer_id: ObjectId | None
) -> Redirect:
    """Undo a change. Raises Conflict with the reason in words if it cannot be undone."""
    location = local_path(form["next"], history_path)
    if customer_id is None and await undo.is_batch(ctx, change_id):  # the notice of an operation on several clients
        return redirect_after_undo(await undo.undo_or_begin_job(ctx, change_id), location)
    change = await changes.find_visible(ctx, change_id)
    if customer_id not in (None, change["customerId"]):
        raise NotFound("change")
    if form["all"] and "batchId" in change:
        return redirect_after_undo(await undo.undo_or_begin_job(ctx, change["batchId"]), location)
    if change["undoneBy"] is not None:
        return Redirect(location, _UNDONE_ALREADY)
    try:
        await undo.undo_change(ctx, change_id)
    except Conflict as error:
        raise Conflict(_REASONS.get(error.code or "", str(error)), code=error.code) from None
    return Redirect(location, "Undone. Undo again to redo.")


async def list_changes(ctx: Context, path: str, query: PartQuery, **filters: Any) -> dict[str, Any]:
    """Return the variables of a list of changes with its path and query; `filters` are as in changes.list_changes."""
    page = await changes.list_changes(ctx, limit=_PAGE_SIZE, after=query["after"], **filters)
    return {
        "rows": await _describe_all(ctx, page["docs"]),
        "query": query,
        "history_path": path,
        "interfaces": [("", "All"), *_VIA.items()],
        "is_first_part": query["after"] is None,
        "next_url": list_url(path, {**query, "after": page["nextCursor"]})() if page["hasMore"] else None,
    }


async def _read_change(ctx: Context, change_id: ObjectId) -> dict[str, Any]:
    """Return the variables of a change's page."""
    change = await changes.get_change(ctx, change_id)
    [described] = await _describe_all(ctx, [cast("ChangeSummary", change)])
    return {
        "change": described,
        "documents": await describe_documents(ctx, change["documents"], await _load_present(ctx, change)),
        "is_undoable": await undo.is_undoable(ctx, change_id),
    }


async def _describe_all(ctx: Context, listed: Sequence[ChangeSummary]) -> list[dict[str, Any]]:
    credentials = await _load_credential_names(ctx, listed)
    client_ids = {change["customerId"] for change in listed if change["customerId"] is not None}
    clients = await customers.find_references(ctx, list(client_ids))
    return [_describe(change, credentials, clients) for change in listed]


async def _load_credential_names(ctx: Context, listed: Sequence[ChangeSummary]) -> dict[ObjectId, str]:
    """Return the names of the keys and assistants of changes, by change, if the caller may see them."""
    made_with, keys, connected = await gather_reads(
        ctx,
        changes.get_credentials(ctx, [change["_id"] for change in listed]),
        api_keys.list_keys(ctx),
        assistants.list_assistants(ctx),
    )
    names = {key["_id"]: key["name"] for key in keys} | {each["_id"]: each["clientName"] for each in connected}
    return {change_id: names[credential] for change_id, credential in made_with.items() if credential in names}


def _describe(change: ChangeSummary, credentials: dict[ObjectId, str], clients: dict[ObjectId, Any]) -> dict[str, Any]:
    """Return a change in words: `title`, `through` (interface, key or assistant), `place` of its approval, `client`."""
    credential, via = credentials.get(change["_id"]), _VIA[change["via"]]
    return {
        **change,
        "title": describe_operation(change["operation"]),
        "place": PLACES[change["decidedIn"]] if change["decidedIn"] is not None else "",
        "through": f"{via}: {credential}" if credential else via,
        "client": clients.get(change["customerId"]) if change["customerId"] else None,
    }


async def _load_present(ctx: Context, change: ChangeDetails) -> dict[ObjectId, dict[str, Any]]:
    """Return the names and dates of changed documents: the first ten workouts, and personal records."""
    if change["customerId"] is None:
        return {}
    changed = [(each["kind"], each["_id"]) for each in change["documents"] if each["action"] == "changed"]
    present: dict[ObjectId, dict[str, Any]] = {}
    for block_id in [identifier for kind, identifier in changed if kind == "workout"][:_MAX_NAMED]:
        with suppress(NotFound):  # deleted since
            block = await workouts.get(ctx, ClientCalendar(change["customerId"]), block_id)
            present[block_id] = {"name": block["name"], "date": block["date"]}
    if any(kind == "personal_record" for kind, _ in changed):
        for record in await personal_records.list_records(ctx, change["customerId"]):
            name = f"{record['exerciseName']} ({record_name(record).lower()})"
            present[record["_id"]] = {"name": name, "date": record["date"]}
    return present
