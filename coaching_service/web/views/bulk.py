"""One change to many clients: chosen in the list, looked at once more, then done before the coach's eyes."""

from __future__ import annotations

import hashlib
from typing import Any

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest, Conflict, Forbidden
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier, Input, ListOf, StringList, Text
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.lifecycle.customer_bulk import service as bulk
from coaching_service.lifecycle.customer_bulk.service import OnProgress
from coaching_service.people.customers import bulk as many
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.training.programs import service as programs
from coaching_service.web.pages import Pages, Redirect, StreamedTask
from coaching_service.web.views.bulk_actions import ACTIONS, Action
from coaching_service.web.views.customers import CustomerFilter, find_customers, list_path, parse_trainer_ids

pages = Pages("/app/customers/bulk")
_NAMED, _PROGRAMS = 12, 500
_NOBODY_LEFT = "Nobody of those is left: it was done already, or somebody else was faster."

NEEDED = {
    "groupNames": ("groupNames",),
    "coachId": ("coachId",),
    "programId": ("programId", "startDate"),
    "metricsSetId": ("metricsSetId",),
}


class Chosen(CustomerFilter):
    """The clients chosen: `ids`, or with `all` every one that the filter matches; and what is to be done with them."""

    ids = ListOf(Identifier(), maximum=1_000, load_default=list)
    all = fields.Boolean(load_default=False)
    action = Choice(*ACTIONS, load_default="groups-add")


class _Needed(Input):
    seen = Text(allow_blank=True, load_default="")
    groupNames = StringList(load_default=list)
    coachId = Text(allow_blank=True, load_default="")
    programId = Identifier(allow_none=True, load_default=None)
    startDate = Date(allow_none=True, load_default=None)
    metricsSetId = Identifier(allow_none=True, load_default=None)


@pages.get("", access=coach(CUSTOMERS.VIEW), query=Chosen(), template="customers/bulk.html")
async def bulk_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any] | Redirect:
    """What is about to be done, with which clients, and what more it needs."""
    action = _allowed(ctx, query["action"])
    ids = await bulk.list_selected(ctx, _selection(query))
    if not ids:
        return Redirect(_back(query), _NOBODY_LEFT if query["all"] else "Choose at least one client first.")
    return {
        "query": query,
        "action": action,
        "count": len(ids),
        "names": await _names(ctx, query, ids),
        "seen": _fingerprint(ids),
        "back": _back(query),
        "today": ctx.caller.today(),
        **await _choices(ctx, action.needs),
    }


async def _choices(ctx: Context, needs: str) -> dict[str, Any]:
    if needs == "groupNames":
        return {"groups": await customers.list_groups(ctx)}
    if needs == "coachId":
        return {"coaches": await team.list_coaches(ctx)}
    if needs == "metricsSetId":
        return {"sets": await metric_sets.list_all(ctx)}
    if needs == "programId":
        return {"programs": await programs.page(ctx, archived=False, page=1, size=_PROGRAMS)}
    return {}


@pages.post("", access=coach(CUSTOMERS.VIEW), query=Chosen(), form=_Needed(), on=bulk_page, request_class="bulk")
async def bulk_change(ctx: Context, query: dict[str, Any], form: dict[str, Any]) -> StreamedTask:
    """Do it, a batch at a time; the page tells how far it is."""
    action = _allowed(ctx, query["action"])
    for name in NEEDED.get(action.needs, ()):
        if not form[name]:
            raise BadRequest([f"{name} is required"])
    if action.needs == "coachId":
        (form["coachId"],) = parse_trainer_ids([form["coachId"]])
    ids = await bulk.list_selected(ctx, _selection(query))
    if form["seen"] != _fingerprint(ids):
        raise Conflict(f"Nothing was done: other clients are meant by now, {len(ids)} of them. Look at them once more.")

    async def work(told: OnProgress) -> Document:
        return await action.run(ctx, {"ids": ids, "dryRun": False}, form, told)

    return StreamedTask("customers/bulk_progress.html", {"action": action}, len(ids), work, _back(query))


def _selection(query: dict[str, Any]) -> Document:
    if not query["all"]:
        return {"ids": query["ids"], "dryRun": False}
    sought: Document = {"archived": query["archived"], "contains": query["keywords"]}
    if query["groups"]:
        sought["groups"] = query["groups"]
    if query["assignedTo"]:
        sought["assignedTo"] = parse_trainer_ids(query["assignedTo"])
    return {"filter": sought, "dryRun": False}


def _fingerprint(ids: list[ObjectId]) -> str:
    """What stands for these clients and no others: the page names them, and the form does it to them alone."""
    return hashlib.sha256(b"".join(each.binary for each in ids)).hexdigest()


async def _names(ctx: Context, query: dict[str, Any], ids: list[ObjectId]) -> list[str]:
    """The first of those chosen, by name."""
    if not query["all"]:
        return await many.list_names(ctx, ids, _NAMED)
    first = (await find_customers(ctx, query | {"page": 1}, _NAMED))["docs"]
    return [" ".join(filter(None, (each["name"], each["surname"]))) for each in first]


def _allowed(ctx: Context, name: str) -> Action:
    action = ACTIONS[name]
    if missing := action.missing(ctx.caller.permissions):
        raise Forbidden(f"The permission {missing} is missing")
    return action


def _back(query: dict[str, Any]) -> str:
    return list_path({name: query[name] for name in CustomerFilter().fields})
