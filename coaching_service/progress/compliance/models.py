"""Compliance as it is computed and returned."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, NotRequired, TypedDict, get_args

from marshmallow import validate as validators
from marshmallow import validates_schema

from coaching_service.core import validation
from coaching_service.core.field_schemas import query_of
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.query import QueryInteger
from coaching_service.people.customers.derived_figures import RateDays, RateOrder

MAX_LIST_DAYS = 92
PERIODS: tuple[RateDays, ...] = get_args(RateDays)


class BlockCompliance(TypedDict):
    """A workout block of a day."""

    id: ObjectId
    name: str
    isCompleted: bool


class DayCompliance(TypedDict):
    """What was scheduled and completed on a day."""

    date: Annotated[str, validation.Date()]
    isWorkoutDay: Annotated[
        bool,
        Description("A block that is not rest has an exercise, a circuit or a task, and the client is not absent."),
    ]
    isRestDay: Annotated[bool, Description("Rest is scheduled, and no workout.")]
    isCompleted: Annotated[bool, Description("All items of the day's workouts are completed.")]
    totalItems: Annotated[int, Description("Items of the day's workouts.")]
    completedItems: Annotated[int, Description("How many of them are completed.")]
    workoutBlocks: list[BlockCompliance]


# `from` is a keyword of Python, so this type has the functional form.
_Compliance = TypedDict(
    "_Compliance",
    {
        "customerId": ObjectId,
        "totalWorkoutDays": Annotated[
            int,
            Description("Workout days up to yesterday, and today once it is completed; not those after today."),
        ],
        "completedWorkoutDays": Annotated[int, Description("How many of them are completed.")],
        "workoutCompletionPercentage": Annotated[
            float | None,
            Description("completedWorkoutDays of totalWorkoutDays, in percent; null without a workout day."),
        ],
        "dailyCompliance": list[DayCompliance],
        "from": Annotated[str, validation.Date(), Description("The first date of the range.")],
        "to": Annotated[str, validation.Date(), Description("The last date of the range, included.")],
    },
)


class Compliance(_Compliance):
    """What a client did of what was scheduled."""


class ClientCompliance(TypedDict):
    """What a client did of what was scheduled, in a list of clients."""

    customerId: ObjectId
    name: Annotated[str, Description("The name and surname of the client.")]
    totalWorkoutDays: Annotated[
        int | None,
        Description("Workout days up to yesterday, and today once it is completed; null with `period`."),
    ]
    completedWorkoutDays: Annotated[int | None, Description("How many of them are completed; null with `period`.")]
    workoutCompletionPercentage: Annotated[
        float | None, Description("In percent, 0 to 100; null without a workout day.")
    ]


class _RateQuery(PartQuery):
    period: NotRequired[
        Annotated[
            RateDays,
            QueryInteger(
                validate=validators.OneOf(
                    PERIODS, error=validation.Message("must be one of: 7, 30, 90", "INVALID_CHOICE")
                ),
                metadata={
                    "description": "The stored rates of the last 7, 30 or 90 days up to each client's today; required "
                    "without `from` and `to`.",
                    "enum": list(PERIODS),
                },
            ),
        ]
    ]
    below: NotRequired[
        Annotated[
            int, QueryInteger(minimum=0, maximum=100), Description("Only clients whose percentage is below this one.")
        ]
    ]
    sort: NotRequired[
        Annotated[
            RateOrder,
            Description(
                "The order: `percentage`, lowest first and null last, the default with `period`; or `name`, the only "
                "one with `from` and `to`."
            ),
        ]
    ]


_Range = TypedDict(
    "_Range",
    {
        "from": NotRequired[
            Annotated[str, validation.SearchedDate(), Description("The first date, with `to` and without `period`.")]
        ],
        "to": NotRequired[
            Annotated[
                str,
                validation.SearchedDate(),
                Description(f"The last date, included; at most {MAX_LIST_DAYS} days with the first one."),
            ]
        ],
    },
)


class ComplianceListQuery(_RateQuery, _Range):
    """Either `period`, on request with `sort`; or `from` and `to`; with `below` on request."""


class _EitherPeriodOrRange(validation.Input):
    @validates_schema(skip_on_field_errors=True)
    def validate_period(self, data: ComplianceListQuery, **_: Any) -> None:
        """Raise ValidationError unless there is either a period, or a range of at most 92 days without its filters."""
        if "period" in data:
            for name in {"from", "to"} & data.keys():
                raise validation.invalid("must not be combined with period", "NOT_ALLOWED", name)
            return
        for name in ("from", "to"):
            if name not in data:
                both_missing = "from" not in data and "to" not in data
                raise (
                    validation.invalid("is required, or from and to", "REQUIRED", "period")
                    if both_missing
                    else validation.invalid("is required", "REQUIRED", name)
                )
        if data.get("sort") == "percentage":
            raise validation.invalid("must be name with from and to", "NOT_ALLOWED", "sort")
        days = (date.fromisoformat(data["to"]) - date.fromisoformat(data["from"])).days + 1
        if days < 1:
            raise validation.invalid("must not be before from", "BEFORE_START", "to")
        if days > MAX_LIST_DAYS:
            raise validation.invalid(f"must be at most {MAX_LIST_DAYS} days with from", "RANGE_TOO_LONG", "to")


COMPLIANCE_LIST_QUERY = query_of(ComplianceListQuery, _EitherPeriodOrRange)


class ComplianceRates(TypedDict):
    """Completed workout days in percent, up to `complianceDate`; None without a workout day."""

    complianceRate7d: float | None
    complianceRate30d: float | None
    complianceRate90d: float | None
    complianceDate: str | None


class ClientFigures(ComplianceRates):
    """The figures stored with a client; `lastTrainedDate` is the date of the latest session with completed work."""

    lastTrainedDate: str | None
