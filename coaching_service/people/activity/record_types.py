"""The types of personal records, declared once for the activity feed, the events and what derives records from logs."""

from __future__ import annotations

from typing import Literal, get_args

RecordType = Literal[
    "heaviest_load",
    "most_reps",
    "estimated_1rm",
    "longest_time",
    "farthest_distance",
    "fastest",
    "least_assistance",
]

HEAVIEST_LOAD: RecordType = "heaviest_load"
MOST_REPS: RecordType = "most_reps"
ESTIMATED_ONE_REP_MAX: RecordType = "estimated_1rm"
LONGEST_TIME: RecordType = "longest_time"
FARTHEST_DISTANCE: RecordType = "farthest_distance"
FASTEST: RecordType = "fastest"
LEAST_ASSISTANCE: RecordType = "least_assistance"
RECORD_TYPES: tuple[RecordType, ...] = get_args(RecordType)
LOWER_IS_BETTER: frozenset[RecordType] = frozenset((FASTEST, LEAST_ASSISTANCE))

# As coaches and clients read them.
RECORD_NAMES: dict[str, str] = {
    HEAVIEST_LOAD: "Heaviest load",
    MOST_REPS: "Most reps",
    ESTIMATED_ONE_REP_MAX: "Estimated 1RM",
    LONGEST_TIME: "Longest time",
    FARTHEST_DISTANCE: "Farthest distance",
    FASTEST: "Fastest",
    LEAST_ASSISTANCE: "Least assistance",
}
