"""Bulk actions on clients: selected in the list, confirmed on a page, then run with their progress shown."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, TypedDict
from urllib.parse import urlencode

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, PermissionMissing
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Choice, Identifier, ListOf, StringList, Text
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.lifecycle.customer_bulk.models import Selection
from coaching_service.people.customers import bulk as customers_by_id
from coaching_service.people.customers import listing, models
from coaching_service.people.team import service as team
from coaching_service.progress.conversation.models import MessageField
from coaching_service.training.programs import service as programs
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, QueuedTask, Redirect, Render, StreamedTask
from coaching_service.web.views.bulk_actions import ACTIONS, Action
from coaching_service.web.views.bulk_jobs import start_operation
from coaching_service.web.views.customers import CustomerFilter, address_of, find_customers, parse_trainer_ids
from coaching_service.web.views.schedule_forms import OUTCOMES, PREVIEW_SHOWN, ConflictChoice, list_taken_days

pages = Pages("/app/customers/bulk")
_MAX_NAMES, _MAX_HIDDEN_NAMES, _MAX_PROGRAMS, _MAX_PREVIEWED = 12, 250, 500, 100
_EMPTY_SELECTION = "No client matches any more. The action may already have been completed."


class ClientSelection(CustomerFilter):
    """The selected clients: `ids`, or with `all` every match of the filter; `page` is the page of the list shown."""

    ids: Annotated[list[ObjectId], ListOf(Identifier(), maximum=1000), Default(list)]
    all: Annotated[bool, Default(False)]
    action: Annotated[str, Choice(*ACTIONS), Default("groups-add")]
    programId: ObjectId | None


class ConfirmedClients(TypedDict):
    """The hash of the clients that the page has shown."""

    selectionHash: Annotated[str, Text(allow_blank=True), Default("")]


class _ActionInput(ConfirmedClients):
    groupNames: Annotated[list[str], StringList(), Default(list)]
    coachId: Annotated[str, Text(allow_blank=True), Default("")]
    programId: ObjectId | None
    startDate: Annotated[str | None, CalendarDate()]
    onConflict: ConflictChoice
    metricsSetId: ObjectId | None
    text: Annotated[str, MessageField(allow_blank=True), Default("")]


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customers/bulk.html")
async def bulk_page(ctx: Context, query: ClientSelection) -> dict[str, Any] | Redirect:
    """Confirmation of an action: the selected clients and the input it requires."""
    action = _get_action(ctx, query["action"])
    if action.page:
        return Redirect(f"{action.page}?{urlencode(to_parameters(query), doseq=True)}")
    ids = await customer_bulk.list_selected(ctx, to_service_selection(query))
    if not ids:
        return Redirect(list_url(query), _EMPTY_SELECTION if query["all"] else "Select at least one client.")
    shown = {customer["_id"] for customer in (await find_customers(ctx, query))["docs"]}
    hidden = [customer_id for customer_id in ids if customer_id not in shown]
    visible = [customer_id for customer_id in ids if customer_id in shown]
    return {
        "query": query,
        "action": action,
        "count": len(ids),
        "hidden_count": len(hidden),
        "hidden_names": await customers_by_id.list_names(ctx, hidden, _MAX_HIDDEN_NAMES),
        "names": await customers_by_id.list_names(ctx, visible, _MAX_NAMES),
        "selection_hash": selection_hash(ids),
        "return_url": list_url(query),
        "today": ctx.caller.today(),
        "preview": None,
        **await _load_options(ctx, action.field),
    }


@pages.post("", access=coach(CUSTOMERS.VIEW), on=bulk_page, request_class="bulk")
async def bulk_change(ctx: Context, query: ClientSelection, form: _ActionInput) -> StreamedTask | QueuedTask:
    """Run an action on the clients that were confirmed, by a job if they are many.

    Raises Conflict if the selection has changed.
    """
    action = _get_action(ctx, query["action"])
    arguments = action.read_arguments(form)
    ids = await customer_bulk.list_selected(ctx, to_service_selection(query))
    require_unchanged(ids, form["selectionHash"])

    if action.field == "coachId":
        (arguments["coachId"],) = parse_trainer_ids([form["coachId"]])
    return start_operation(ctx, action.operation, ids, arguments, title=action.title, return_url=list_url(query))


@pages.post("/preview", access=coach(CUSTOMERS.VIEW), on=bulk_page, preview_of=bulk_change, request_class="bulk")
async def preview_bulk_assignment(ctx: Context, query: ClientSelection, form: _ActionInput) -> Render:
    """Show on which days of a program the first of the clients have workouts."""
    action = _get_action(ctx, "assign-program")
    arguments = action.read_arguments(form)
    ids = (await customer_bulk.list_selected(ctx, to_service_selection(query)))[:_MAX_PREVIEWED]
    operation = await customer_bulk.assign_program(
        ctx, arguments["programId"], arguments["startDate"], arguments["onConflict"]
    )
    await customer_bulk.run_operation(ctx, {"ids": ids, "dryRun": True}, operation, customer_bulk.Run())
    by_client = operation.conflicts
    shown = list(by_client)[:_MAX_NAMES]
    names = await customers_by_id.load_names(ctx, shown)
    preview = {
        "checked": len(ids),
        "outcome": OUTCOMES[form["onConflict"]],
        "count": len(by_client),
        "clients": [(names[each], list_taken_days(by_client[each])) for each in shown if each in names],
    }
    return Render({"preview": preview}, PREVIEW_SHOWN)


def require_unchanged(ids: list[ObjectId], confirmed: str) -> None:
    """Raise Conflict unless the clients are those whose hash was confirmed."""
    if confirmed != selection_hash(ids):
        raise Conflict(
            f"Nothing was changed: the selection changed to {quantity(len(ids), 'client')} meanwhile. Check it again.",
            code="SELECTION_CHANGED",
        )


def _get_action(ctx: Context, name: str) -> Action:
    action = ACTIONS[name]
    if permission := action.missing_permission(ctx.caller.permissions):
        raise PermissionMissing(permission)
    return action


async def _load_options(ctx: Context, field: str) -> dict[str, Any]:
    """Return the template variables from which the action's input is chosen."""
    if field == "groupNames":
        return {"groups": await listing.list_groups(ctx)}
    if field == "coachId":
        return {"coaches": await team.list_coaches(ctx)}
    if field == "metricsSetId":
        return {"sets": await metric_sets.list_all(ctx)}
    if field == "programId":
        return {"programs": await programs.list_page(ctx, archived=False, page=1, size=_MAX_PROGRAMS)}
    return {}


def to_service_selection(query: ClientSelection) -> Selection:
    """Return the selection that the query of a page means."""
    if not query["all"]:
        return {"ids": query["ids"], "dryRun": False}
    customer_filter: models.CustomerFilter = {"archived": query["archived"], "contains": query["keywords"]}
    if query["groups"]:
        customer_filter["groups"] = query["groups"]
    if query["assignedTo"]:
        customer_filter["assignedTo"] = parse_trainer_ids(query["assignedTo"])
    return {"filter": customer_filter, "dryRun": False}


def to_parameters(query: ClientSelection) -> dict[str, Any]:
    """Return the parameters of a page for the same selection."""
    parameters = {name: value for name, value in query.items() if value and name != "action"}
    return {name: "true" if value is True else value for name, value in parameters.items()}


def selection_hash(ids: list[ObjectId]) -> str:
    """Return a hash of the clients on the confirmation page, so that the form applies to these clients only."""
    return hashlib.sha256(b"".join(customer_id.binary for customer_id in ids)).hexdigest()


def list_url(query: ClientSelection) -> str:
    """Return the address of the list in which the clients were selected."""
    return address_of(take(CustomerFilter, query))()
