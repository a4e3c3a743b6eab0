"""Database access for training maximums and the estimates that stand in for them: at most one of each an exercise.

Both are in one collection, so that a plan is resolved with one query, also inside a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.training.training_maxes.models import MaxSource, StoredTrainingMax

SET: MaxSource = "coach"
ESTIMATED: MaxSource = "records"


def _kind_of(known: Mapping[str, Any]) -> str:
    """Return the kind of a stored load in the history: what a coach has set, or what follows from the records."""
    return "estimated_max" if known.get("source") == ESTIMATED else "training_max"


training_maxes = Documents[StoredTrainingMax](
    "trainingMaxes",
    (Index(("customerId", "exerciseId", "source"), unique=True),),
    client_field="customerId",
    history=History("training_max", undo="derived", event_fields=("source",), kind_of=_kind_of),
    transfer=Portable(StoredTrainingMax, RECORDS, references={"customerId": "customers", "exerciseId": "exercises"}),
)


def key(customer_id: ObjectId, exercise_id: ObjectId, source: MaxSource) -> Filter:
    """Return the condition of the load of an exercise of a client from a source."""
    return {"customerId": customer_id, "exerciseId": exercise_id, "source": source}
