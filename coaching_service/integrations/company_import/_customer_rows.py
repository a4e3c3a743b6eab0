"""The rows of a table of clients: each is validated like a request; optional values that are not valid are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from marshmallow import ValidationError

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation_messages import field_errors
from coaching_service.integrations.background_jobs.models import JobError
from coaching_service.integrations.history_files.rosters import Roster, RosterRow
from coaching_service.library.imported_names.models import CREATE, SKIP, NameAnswer
from coaching_service.people.customers.full_names import full_name_key
from coaching_service.people.customers.models import CustomerDetails, CustomerIdentity
from coaching_service.people.customers.schemas import CustomerFields as CustomerSchema
from coaching_service.people.identities.addresses import account_key
from coaching_service.people.team.models import Coach

_SCHEMA = CustomerSchema(exclude=("metadata",))
_LEFT_OUT = "VALUE_LEFT_OUT"

# What is compared, and its value.
Key = tuple[Literal["email", "name"], str]


@dataclass
class CustomerRow:
    """A row: the client to create or change, or its problems.

    `answer`: the client of the company who is meant, `create`, or None. `details` is None for a row that is left out.
    """

    source: RosterRow
    details: CustomerDetails | None = None
    answer: NameAnswer | None = None
    problems: list[JobError] = field(default_factory=list)

    @property
    def target(self) -> ObjectId | None:
        """The client of the company whom an answer names."""
        return self.answer if isinstance(self.answer, ObjectId) else None

    @property
    def is_new(self) -> bool:
        """Whether an answer says that it is a new client, although the company has the same."""
        return self.answer == CREATE

    def report(self, field_path: str | None, code: str, message: str, holder: ObjectId | None = None) -> None:
        """Report a problem. `holder` is the client because of whom the row is left out."""
        row = self.source.row
        problem: JobError = {
            "entry": row.place,
            "line": row.line,
            "field": field_path,
            "code": code,
            "message": message,
        }
        self.problems.append(problem if holder is None else {**problem, "_id": holder})

    def reject(self, field_path: str | None, code: str, message: str, holder: ObjectId | None = None) -> None:
        """Leave the row out."""
        self.details = None
        self.report(field_path, code, message, holder)


def validate_rows(roster: Roster, answers: Mapping[str, NameAnswer], coaches: Sequence[Coach]) -> list[CustomerRow]:
    """Return the rows of a roster; `answers` are about clients by their name or e-mail address in the file."""
    by_name = {normalize(name): answer for name, answer in answers.items()}
    trainers = _trainers(coaches)
    rows = [_validate(source, by_name, trainers) for source in roster.rows]
    _reject_duplicates(rows)
    return rows


def key_of(client: CustomerDetails) -> Key:
    """Return by what a client is found again: the e-mail address, whatever the name, or else the full name."""
    return email_key(email) if (email := client.get("email")) else name_key(client)


def email_key(email: str) -> Key:
    """Return what is the same for all spellings of an e-mail address."""
    return "email", account_key(email)


def name_key(client: CustomerDetails | CustomerIdentity) -> Key:
    """Return what is the same for clients with the same full name, however it is divided."""
    return "name", full_name_key(client)


def _validate(source: RosterRow, answers: Mapping[str, NameAnswer], trainers: Mapping[str, ObjectId]) -> CustomerRow:
    row = CustomerRow(source)
    keys = (source.full_name, source.details["name"], source.details.get("email", ""))
    row.answer = next((answers[key] for each in keys if (key := normalize(each)) in answers), None)
    if source.surplus:
        row.reject(None, "TOO_MANY_CELLS", f"has {source.surplus} more cells than there are columns")
        return row
    if row.answer == SKIP:
        row.reject("name", "SKIPPED", "is a client who is left out")
        return row
    for each in source.left_out:
        row.report(each["field"], each["code"], each["message"])
    sent: dict[str, Any] = dict(source.details)
    if source.trainer:
        trainer = trainers.get(normalize(source.trainer))
        if trainer is None:
            row.report(
                "assignedTo", _LEFT_OUT, f"is not the e-mail address or name of one coach: {source.trainer[:50]}"
            )
        else:
            sent["assignedTo"] = str(trainer)
    row.details = _load(row, sent)
    return row


def _load(row: CustomerRow, sent: dict[str, Any]) -> CustomerDetails | None:
    """Return valid details; what is not valid is left out, and so is the row if it is the name."""
    try:
        return cast("CustomerDetails", _SCHEMA.load(sent))
    except ValidationError as error:
        errors = field_errors(error)
    names = {each["field"].partition(".")[0] for each in errors}
    if "name" in names:
        for each in errors:
            row.report(each["field"], each["code"], each["message"])
        return None
    for each in errors:
        row.report(each["field"], _LEFT_OUT, each["message"])
    return cast("CustomerDetails", _SCHEMA.load({name: value for name, value in sent.items() if name not in names}))


def _trainers(coaches: Sequence[Coach]) -> dict[str, ObjectId]:
    """Return coaches by e-mail address, and by name if no other one has it."""
    names = [normalize(coach["name"]) for coach in coaches]
    unique = {name: coach["_id"] for name, coach in zip(names, coaches, strict=True) if names.count(name) == 1}
    return {**unique, **{normalize(coach["email"]): coach["_id"] for coach in coaches}}


def _reject_duplicates(rows: Sequence[CustomerRow]) -> None:
    """Leave out clients who are in an earlier row; different external identifiers mean different clients."""
    first_of_ids: dict[str, CustomerRow] = {}
    first_of: dict[Key, CustomerRow] = {}
    for row in rows:
        if row.details is None:
            continue
        if (external_id := row.details.get("externalId")) is not None:
            first = first_of_ids.setdefault(external_id, row)
            if first is not row:
                row.reject("externalId", "DUPLICATE", f"is the same as in {first.source.row.place}")
                continue
        first = first_of.setdefault(key_of(row.details), row)
        first_of.setdefault(name_key(row.details), row)
        if first is not row and not (external_id and first.details and first.details.get("externalId")):
            row.reject(None, "DUPLICATE", f"is the same client as in {first.source.row.place}")
