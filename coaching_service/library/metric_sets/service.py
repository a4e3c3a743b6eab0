"""What a coach does with metric sets."""

from __future__ import annotations

from collections.abc import Iterable

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.metric_sets import store
from coaching_service.library.metric_sets.units import UNITS


async def everything(ctx: Context) -> list[Document]:
    """The company's metric sets by name."""
    return [present(found) for found in await store.everything(ctx)]


async def read(ctx: Context, set_id: ObjectId) -> Document:
    """One metric set. Raises NotFound."""
    if (found := await store.one(ctx, set_id)) is None:
        raise NotFound("metrics set")
    return present(found)


async def read_whole(ctx: Context, set_id: ObjectId, *, deleted_too: bool) -> Document:
    """One metric set (`deleted_too`: or a deleted one) with its `archivedMetrics`. Raises NotFound."""
    found = await store.some(ctx, [set_id], deleted_too=deleted_too)
    if not found:
        raise NotFound("metrics set")
    return _with_archived(found[0])


async def automatic(ctx: Context) -> list[Document]:
    """The sets that every new client is assigned."""
    return [present(found) for found in await store.automatic(ctx)]


async def named(ctx: Context, set_ids: Iterable[ObjectId]) -> dict[ObjectId, Document]:
    """The metric sets by identifier, deleted ones included, each with its `archivedMetrics`."""
    wanted = set(set_ids)
    return {found["_id"]: _with_archived(found) for found in await store.some(ctx, list(wanted))} if wanted else {}


async def create(ctx: Context, details: Document) -> Document:
    """A new metric set; `details`: name, assignAutomatically, metrics `[{name, metricUnitId}]`.

    Raises NotFound for an unknown unit.
    """
    made = _named(details) | {"metrics": [_metric(ObjectId(), metric) for metric in details["metrics"]]}
    return present(await store.add(ctx, made))


async def change(ctx: Context, set_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a metric set. A metric left out is archived, not lost: its history stays.

    Raises NotFound for the set, a metric or a unit, BadRequest when a metric's unit would change, and Conflict when
    the set has been changed since `version`.
    """
    details = dict(details)
    version = details.pop("version", None)

    def mutate(stored: Document) -> Document:
        fields = _named(details)
        if "metrics" in details:
            fields["metrics"] = _merged(stored["metrics"], details["metrics"])
        return fields

    changed = await store.rewrite(ctx, set_id, mutate, version)
    if changed is None:
        raise NotFound("metrics set")
    return present(changed)


async def remove(ctx: Context, set_id: ObjectId) -> None:
    """Delete a metric set; what was recorded stays. Raises NotFound."""
    if not await store.bury(ctx, set_id):
        raise NotFound("metrics set")


def units() -> list[Document]:
    """Every unit, `{_id, name, shortName}`."""
    return list(UNITS.values())


def present(stored: Document) -> Document:
    """A stored metric set as it is read: archived metrics left out, units named."""
    return {**stored, "metrics": _read(stored["metrics"], archived=False)}


def _with_archived(stored: Document) -> Document:
    return present(stored) | {"archivedMetrics": _read(stored["metrics"], archived=True)}


def _read(metrics: list[Document], *, archived: bool) -> list[Document]:
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnit": UNITS[metric["metricUnitId"]]}
        for metric in metrics
        if metric["isArchived"] is archived
    ]


def _merged(stored: list[Document], sent: list[Document]) -> list[Document]:
    kept = [metric["_id"] for metric in sent if "_id" in metric]
    if len(set(kept)) < len(kept):
        raise BadRequest(["metrics must name each metric only once"])
    there = {metric["_id"]: metric for metric in stored}
    merged = []
    for metric in sent:
        before = there.pop(metric["_id"], None) if "_id" in metric else None
        if before is None and "_id" in metric:
            raise NotFound("metric")
        if before is not None and before["metricUnitId"] != metric["metricUnitId"]:
            raise BadRequest(["metrics: a metric keeps its unit; leave it out and add another instead"])
        merged.append(_metric(before["_id"] if before else ObjectId(), metric))
    return merged + [{**metric, "isArchived": True} for metric in there.values()]


def _metric(identifier: ObjectId, sent: Document) -> Document:
    if sent["metricUnitId"] not in UNITS:
        raise NotFound("metric unit")
    return {"_id": identifier, "name": sent["name"], "metricUnitId": sent["metricUnitId"], "isArchived": False}


def _named(details: Document) -> Document:
    fields: Document = {name: details[name] for name in ("name", "assignAutomatically") if name in details}
    return fields | {"sortName": normalize(fields["name"])} if "name" in fields else fields
