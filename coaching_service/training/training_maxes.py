"""The loads to which a client's planned percentages refer: training maximums, else estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypedDict, cast

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import Description, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Number
from coaching_service.library.exercises import service as exercises
from coaching_service.people import account
from coaching_service.people.account import Conversion, LoadCount
from coaching_service.people.customers import service as customers

# --- Training maximums and estimated one-repetition maximums as they are stored and returned --------------------------


MAX_VALUE = 100_000

MaxSource = Literal["coach", "records"]


class StoredTrainingMax(declared.Stored):
    """A load to which a client's percentages for an exercise refer, in the company's unit.

    Its `source` is `coach` for a training maximum (`value` is None once it is removed), or `records` for the estimated
    one-repetition maximum: the highest of the personal records.
    """

    customerId: ObjectId
    exerciseId: ObjectId
    source: MaxSource
    value: float | None


class TrainingMax(TypedDict):
    """The load to which a client's planned percentages for an exercise refer."""

    exerciseId: ObjectId
    value: Annotated[float | None, Description("In the company's unit; null once removed.")]
    updatedAt: datetime


class ReferenceLoads(TypedDict):
    """The loads to which percentages of an exercise can refer: the training maximum, else the estimate."""

    trainingMax: float | None
    estimatedOneRepMax: float | None


def load_of(loads: ReferenceLoads) -> float | None:
    """Return the load to which percentages refer: the training maximum, else the estimate."""
    return loads["estimatedOneRepMax"] if loads["trainingMax"] is None else loads["trainingMax"]


class NewTrainingMax(TypedDict):
    """A training maximum to set."""

    value: Annotated[
        float | None,
        Number(
            minimum=0,
            maximum=MAX_VALUE,
            required=True,
            metadata={
                "description": "The load, in the company's unit, to which percentages refer. null removes it: "
                "percentages then refer to the estimated 1RM. Where the load is added to the body's weight: "
                "what is added."
            },
        ),
    ]


# --- Store ------------------------------------------------------------------------------------------------------------
# Database access for training maximums and the estimates that stand in for them: at most one of each an exercise.
#
# Both are in one collection, so that a plan is resolved with one query, also inside a transaction.


SET: MaxSource = "coach"
ESTIMATED: MaxSource = "records"


training_maxes = Documents[StoredTrainingMax](
    "trainingMaxes",
    (declared.Index(("customerId", "exerciseId", "source"), unique=True),),
    client_field="customerId",
    history=declared.History(
        "training_max",
        undo="derived",
        event_fields=("source",),
        kind_of=lambda known: "estimated_max" if known.get("source") == ESTIMATED else "training_max",
    ),
    transfer=declared.Portable(
        StoredTrainingMax, declared.RECORDS, references={"customerId": "customers", "exerciseId": "exercises"}
    ),
)


def key(customer_id: ObjectId, exercise_id: ObjectId, source: MaxSource) -> Filter:
    """Return the condition of the load of an exercise of a client from a source."""
    return {"customerId": customer_id, "exerciseId": exercise_id, "source": source}


@transactional
async def set_by_coach(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, value: float | None) -> TrainingMax:
    """Set a client's training maximum of an exercise, in the company's unit of load; None removes it.

    Raises NotFound if the company has no such client or exercise, Forbidden if the client is outside the caller's
    scope.
    """
    await customers.get_visible(ctx, customer_id)
    await exercises.require_known(ctx, exercise_id)
    if value is not None:
        await account.lock_load_unit(ctx)
        await customers.lock_and_mark_figures(ctx, customer_id)
    where = key(customer_id, exercise_id, SET)
    return take(TrainingMax, await training_maxes.upsert(ctx, where, {"value": value}))


async def find_set_maxes(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]
) -> list[StoredTrainingMax]:
    """Return the training maximums of exercises as they are stored, for a client whose access has been checked."""
    where: Filter = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}, "source": SET}
    return await training_maxes.find(ctx, where | {"value": {"$ne": None}})


async def load_reference_loads(
    ctx: Context, customer_id: ObjectId | None, exercise_ids: Iterable[ObjectId]
) -> dict[ObjectId, ReferenceLoads]:
    """Return the training maximum and the estimated one-repetition maximum of exercises, in the company's unit.

    For a client whose access has been checked (None: there are none); exercises with neither are left out.
    """
    ids, loads = list(exercise_ids), dict[ObjectId, ReferenceLoads]()
    if customer_id is None or not ids:
        return loads
    where: Filter = {"customerId": customer_id, "exerciseId": {"$in": ids}, "value": {"$ne": None}}
    for stored in await training_maxes.find(ctx, where, fields=("exerciseId", "source", "value")):
        of_exercise = loads.setdefault(stored["exerciseId"], {"trainingMax": None, "estimatedOneRepMax": None})
        of_exercise["trainingMax" if stored["source"] == SET else "estimatedOneRepMax"] = stored["value"]
    return loads


async def set_estimates(ctx: Context, customer_id: ObjectId, estimates: Mapping[ObjectId, float | None]) -> None:
    """Store a client's estimated one-repetition maximums, by exercise, derived from the records; None deletes one."""
    if removed := [exercise_id for exercise_id, value in estimates.items() if value is None]:
        where: Filter = {"customerId": customer_id, "exerciseId": {"$in": removed}, "source": ESTIMATED}
        await training_maxes.delete_many(ctx, where)
    stored = [
        {**key(customer_id, exercise_id, ESTIMATED), "value": value}
        for exercise_id, value in estimates.items()
        if value is not None
    ]
    await training_maxes.upsert_many(ctx, ("customerId", "exerciseId", "source"), stored)


async def convert_client(
    ctx: Context, customer_id: ObjectId, conversion: Conversion, estimates: Mapping[ObjectId, float]
) -> LoadCount:
    """Convert the training maximums of a client, who is locked, to another unit, in the caller's transaction.

    `estimates` are those that follow from the converted records, by exercise; others are converted too.
    """
    writes: list[tuple[Filter, Document | list[Document]]] = []
    at = now()
    for stored in await training_maxes.find(ctx, {"customerId": customer_id, "value": {"$ne": None}}):
        value = min(conversion.convert(cast("float", stored["value"])), float(MAX_VALUE))
        if stored["source"] == ESTIMATED:
            value = estimates.get(stored["exerciseId"], value)
        change = {"$set": {"value": value, "updatedAt": at}, "$inc": {"version": 1}}  # not one of the history
        writes.append(({"_id": stored["_id"]}, change))
    if conversion.is_stored:
        await training_maxes.set_derived_each(ctx, writes)
    return LoadCount(len(writes), len(writes))


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a training maximum with a load, but none of the clients `without`; None if there is none."""
    where: Filter = {"value": {"$type": "number"}, "customerId": {"$nin": list(without)}}
    found = await training_maxes.find_one(ctx, where, ("customerId",))
    return None if found is None else (found["customerId"],)


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/training-maxes", tag="Training maximums", locks="customer")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_training_maxes(ctx: Context, customer_id: ObjectId) -> list[TrainingMax]:
    """List a client's training maximums.

    Planned sets with `loadPercent` refer to them; for other exercises they refer to the estimated 1RM.
    """
    where = {"customerId": customer_id, "source": SET, "value": {"$ne": None}}
    find_maxes = training_maxes.find(ctx, where, sort=("exerciseId",))
    _, maxes = await gather_reads(ctx, customers.get_visible(ctx, customer_id), find_maxes)
    return [take(TrainingMax, stored) for stored in maxes]


@routes.put("/{exerciseId}", access=coach(CUSTOMERS.EDIT), errors=(NotFound,), example={"value": 140})
async def set_training_max(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, body: NewTrainingMax
) -> TrainingMax:
    """Set a client's training maximum for an exercise.

    Loads that are planned in percent follow on the next read. null removes the training maximum.
    """
    return await set_by_coach(ctx, customer_id, exercise_id, body["value"])
