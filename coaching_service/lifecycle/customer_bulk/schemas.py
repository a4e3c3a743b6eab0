"""Requests and responses of the bulk operations. Unknown fields are rejected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, ValidationError, fields, validates_schema

from coaching_service.core.validation import Boolean, Date, Identifier, Input, Integer, ListOf, Output, StringList, Text
from coaching_service.people.customers.schemas import NO_TRAINER
from coaching_service.progress.conversation.models import MAX_TEXT_LENGTH
from coaching_service.training.schedule.schemas import on_conflict

MAXIMUM = 20_000


class Strict(Input):
    """The base of a request in which unknown fields are rejected."""

    class Meta:
        unknown = RAISE


class TrainerOrNone(Identifier):
    """A coach's identifier, or `none`: clients without a trainer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"pattern": f"^([0-9a-fA-F]{{24}}|{NO_TRAINER})$"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return None if value == NO_TRAINER else super()._deserialize(value, attr, data, **kwargs)


class CustomerFilter(Strict):
    """Clients by their properties; an empty list or text matches all clients."""

    archived = Boolean(required=True)
    contains = Text(allow_blank=True)
    groups = StringList(maximum=1_000, allow_none=False)
    assignedTo = ListOf(TrainerOrNone(), maximum=1_000)


class CustomerSelection(Strict):
    """Which clients: `ids`, or `filter` with optional `excludeIds`. `dryRun` writes nothing."""

    ids = ListOf(Identifier(), maximum=MAXIMUM)
    filter = fields.Nested(CustomerFilter)
    excludeIds = ListOf(Identifier(), maximum=MAXIMUM)
    dryRun = Boolean(load_default=False)

    @validates_schema
    def one_or_the_other(self, data: Mapping[str, Any], **_: Any) -> None:
        """Either `ids` or `filter`; `excludeIds` only with `filter`."""
        if ("ids" in data) == ("filter" in data):
            raise ValidationError("needs either ids or filter", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter only", "excludeIds")


class BulkGroupsChange(CustomerSelection):
    """Groups to add or to remove."""

    groups = StringList(required=True, allow_none=False)

    @validates_schema
    def some_groups(self, data: Mapping[str, Any], **_: Any) -> None:
        """At least one group."""
        if not data.get("groups"):
            raise ValidationError("should not be empty", "groups")


class BulkTrainerAssignment(CustomerSelection):
    """The coach to assign; null: none."""

    coachId = Identifier(required=True, allow_none=True)


class BulkProgramAssignment(CustomerSelection):
    """The program to assign, and the date of its first day."""

    programId = Identifier(required=True)
    startDate = Date(required=True)
    weekdays = ListOf(
        Integer(minimum=1, maximum=7),
        minimum=1,
        maximum=7,
        allow_none=True,
        load_default=None,
        metadata={"description": "As in assigning a program to one client."},
    )
    onConflict = on_conflict()


class BulkMessage(CustomerSelection):
    """The message to send to each client."""

    text = Text(max_length=MAX_TEXT_LENGTH, required=True, metadata={"description": "Plain text."})


class BulkMetricsSetAssignment(CustomerSelection):
    """The metric set to assign."""

    metricsSetId = Identifier(required=True)


class BulkFailure(Output):
    """A client who was not changed, and why."""

    customerId = Identifier()
    code = fields.String(metadata={"description": "NOT_FOUND, FORBIDDEN, CONFLICT or BAD_REQUEST."})
    message = fields.String()


class BulkResult(Output):
    """The result: inspect `failed` even though the status is 200."""

    requested = fields.Integer(metadata={"description": "Distinct clients requested."})
    ok = fields.Integer(metadata={"description": "Clients changed, or who would be changed in a dry run."})
    failed = fields.List(fields.Nested(BulkFailure))


class CustomerConflict(Output):
    """A block that a client had on a day to which the program is assigned."""

    customerId = Identifier()
    date = Date()
    wblockId = Identifier()
    name = fields.String()


class BulkAssignmentResult(BulkResult):
    """The result of assigning a program to many clients."""

    conflicts = fields.List(
        fields.Nested(CustomerConflict),
        metadata={
            "description": "In a dry run, if any: the blocks on the days of the program, of at most 1,000 clients.",
            "optional": True,
        },
    )
