"""One change to many clients: chosen in the list, looked at once more, then done before the coach's eyes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from marshmallow import fields

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS, METRICS, PROGRAMS
from coaching_service.kernel.errors import BadRequest, Forbidden
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.validation import Choice, Day, Identifier, Input, ListOf, Text
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.lifecycle.customer_bulk import service as bulk
from coaching_service.lifecycle.customer_bulk.service import Told
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.training.programs import service as programs
from coaching_service.web.pages import Go, Pages, Working
from coaching_service.web.views.customers import Filter, address, found, trainers, words

pages = Pages("/app/customers/bulk")

Run = Callable[[Context, Document, dict[str, Any], Told], Awaitable[Document]]


@dataclass(frozen=True)
class Action:
    """Something that can be done with many clients: what it is called, what it needs, and who may."""

    title: str
    button: str
    run: Run
    permission: str = CUSTOMERS.EDIT
    needs: str = ""
    loses: str = ""


async def _archive(ctx: Context, chosen: Document, _: dict[str, Any], told: Told) -> Document:
    return await bulk.archive(ctx, chosen, archived=True, told=told)


async def _restore(ctx: Context, chosen: Document, _: dict[str, Any], told: Told) -> Document:
    return await bulk.archive(ctx, chosen, archived=False, told=told)


async def _add_groups(ctx: Context, chosen: Document, form: dict[str, Any], told: Told) -> Document:
    return await bulk.add_groups(ctx, chosen, words(form["groupNames"]), told=told)


async def _remove_groups(ctx: Context, chosen: Document, form: dict[str, Any], told: Told) -> Document:
    return await bulk.remove_groups(ctx, chosen, words(form["groupNames"]), told=told)


async def _assign_trainer(ctx: Context, chosen: Document, form: dict[str, Any], told: Told) -> Document:
    return await bulk.assign_trainer(ctx, chosen, form["coachId"], told=told)


async def _assign_program(ctx: Context, chosen: Document, form: dict[str, Any], told: Told) -> Document:
    return await bulk.assign_program(ctx, chosen, form["programId"], form["startDate"], told=told)


async def _assign_metrics(ctx: Context, chosen: Document, form: dict[str, Any], told: Told) -> Document:
    return await bulk.assign_metrics_set(ctx, chosen, form["metricsSetId"], told=told)


async def _erase(ctx: Context, chosen: Document, _: dict[str, Any], told: Told) -> Document:
    return await bulk.erase(ctx, chosen, told=told)


ACTIONS = {
    "groups-add": Action("Add to groups", "Add to the groups", _add_groups, needs="groupNames"),
    "groups-remove": Action("Remove from groups", "Remove from the groups", _remove_groups, needs="groupNames"),
    "assign-trainer": Action("Assign a trainer", "Assign", _assign_trainer, needs="coachId"),
    "assign-program": Action("Assign a program", "Assign the program", _assign_program, needs="programId"),
    "assign-metrics-set": Action(
        "Assign a metric set", "Assign the set", _assign_metrics, METRICS.EDIT, needs="metricsSetId"
    ),
    "archive": Action("Archive", "Archive them", _archive),
    "unarchive": Action("Restore", "Restore them", _restore),
    "delete": Action(
        "Delete for good",
        "Delete them for good",
        _erase,
        CUSTOMERS.DELETE,
        loses="Their calendars, logs, metrics, photos, plans, notes and records are erased. This cannot be undone.",
    ),
}


NEEDED = {"groupNames": ("groupNames",), "programId": ("programId", "startDate"), "metricsSetId": ("metricsSetId",)}


class Chosen(Filter):
    """The clients chosen: `ids`, or with `all` every one that the filter matches; and what is to be done with them."""

    ids = ListOf(Identifier(), most=1_000, load_default=list)
    all = fields.Boolean(load_default=False)
    action = Choice(*ACTIONS, load_default="groups-add")


class _Needed(Input):
    groupNames = Text(blank=True, allow_none=True, load_default=None)
    coachId = Identifier(allow_none=True, load_default=None)
    programId = Identifier(allow_none=True, load_default=None)
    startDate = Day(allow_none=True, load_default=None)
    metricsSetId = Identifier(allow_none=True, load_default=None)


@pages.get("", access=coach(CUSTOMERS.VIEW), query=Chosen(), template="customers/bulk.html")
async def bulk_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any] | Go:
    """What is about to be done, with how many clients, and what more it needs."""
    action = _allowed(ctx, query["action"])
    count = await _count(ctx, query)
    if not count:
        return Go(_back(query), "Choose at least one client first.")
    return {
        "query": query,
        "action": action,
        "count": count,
        "back": _back(query),
        "today": ctx.who.today(),
        **await _choices(ctx, action.needs),
    }


async def _choices(ctx: Context, needs: str) -> dict[str, Any]:
    if needs == "groupNames":
        return {"groups": await customers.groups(ctx)}
    if needs == "coachId":
        return {"coaches": await team.everybody(ctx)}
    if needs == "metricsSetId":
        return {"sets": await metric_sets.everything(ctx)}
    if needs == "programId":
        found = await programs.page(ctx, archived=False, page=1, size=50)
        return {"programs": found["docs"] if PROGRAMS.VIEW in ctx.who.permissions else []}
    return {}


@pages.post("", access=coach(CUSTOMERS.VIEW), query=Chosen(), form=_Needed(), on=bulk_page, lane="long")
async def bulk_change(ctx: Context, query: dict[str, Any], form: dict[str, Any]) -> Working:
    """Do it, a batch at a time; the page tells how far it is."""
    action = _allowed(ctx, query["action"])
    for name in NEEDED.get(action.needs, ()):
        if not form[name]:
            raise BadRequest([f"{name} is required"])
    total = await _count(ctx, query)

    async def work(told: Told) -> Document:
        return await action.run(ctx, _selection(query), form, told)

    return Working("customers/working.html", {"action": action, "back": _back(query)}, total, work)


def _selection(query: dict[str, Any]) -> Document:
    if not query["all"]:
        return {"ids": query["ids"], "dryRun": False}
    sought: Document = {"archived": query["archived"], "contains": query["keywords"]}
    if query["groups"]:
        sought["groups"] = query["groups"]
    if query["assignedTo"]:
        sought["assignedTo"] = trainers(query["assignedTo"])
    return {"filter": sought, "dryRun": False}


async def _count(ctx: Context, query: dict[str, Any]) -> int:
    if not query["all"]:
        return len(set(query["ids"]))
    return int((await found(ctx, query | {"page": 1}, 1))["totalDocs"])


def _allowed(ctx: Context, name: str) -> Action:
    action = ACTIONS[name]
    if action.permission not in ctx.who.permissions:
        raise Forbidden(f"The permission {action.permission} is missing")
    return action


def _back(query: dict[str, Any]) -> str:
    return address({name: query[name] for name in Filter().fields})
