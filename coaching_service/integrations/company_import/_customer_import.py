"""Importing a table of clients: each row becomes a client, without an invitation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import IO, Any, Literal, cast

from marshmallow import ValidationError

from coaching_service.core.database.context import Context
from coaching_service.core.errors import ExternalIdTaken, FieldError
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import field_errors
from coaching_service.integrations.history_files.rosters import Roster, RosterRow, read_roster
from coaching_service.integrations.history_files.set_files import ask_for_column
from coaching_service.integrations.history_files.tables import Problem, Question, count_kinds
from coaching_service.integrations.history_files.values import is_total
from coaching_service.integrations.history_import import models as import_models
from coaching_service.integrations.history_import.importing import Progress
from coaching_service.integrations.history_import.models import ImportRefused
from coaching_service.library.imported_names import CREATE, SKIP, NameAnswer
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CUSTOMER_FIELDS
from coaching_service.people.identities.models import account_key
from coaching_service.people.jobs import JobError
from coaching_service.progress import notes

# --- Customer rows ----------------------------------------------------------------------------------------------------
# The rows of a table of clients: each is validated like a request; optional values that are not valid are left out.


_SCHEMA = CUSTOMER_FIELDS(exclude=("metadata",))
_LEFT_OUT = "VALUE_LEFT_OUT"

# What is compared, and its value.
Key = tuple[Literal["email", "name"], str]


@dataclass
class CustomerRow:
    """A row: the client to create or change, or its problems.

    `answer`: the client of the company who is meant, `create`, or None. `details` is None for a row that is left out.
    """

    source: RosterRow
    details: customer_models.CustomerDetails | None = None
    answer: NameAnswer | None = None
    problems: list[JobError] = field(default_factory=list)

    @property
    def target(self) -> ObjectId | None:
        """The client of the company whom an answer names."""
        return self.answer if isinstance(self.answer, ObjectId) else None

    def report(self, field_path: str | None, code: str, message: str, holder: ObjectId | None = None) -> None:
        """Report a problem. `holder` is the client because of whom the row is left out."""
        problem = cast("JobError", self.source.row.problem(field_path, code, message))
        self.problems.append(problem if holder is None else {**problem, "_id": holder})

    def reject(self, field_path: str | None, code: str, message: str, holder: ObjectId | None = None) -> None:
        """Leave the row out."""
        self.details = None
        self.report(field_path, code, message, holder)


def validate_rows(
    roster: Roster, answers: Mapping[str, NameAnswer], coaches: Sequence[team.Coach]
) -> list[CustomerRow]:
    """Return the rows of a roster; `answers` are about clients by their name or e-mail address in the file."""
    by_name = {normalize(name): answer for name, answer in answers.items()}
    names = [normalize(coach["name"]) for coach in coaches]
    trainers = {name: coach["_id"] for name, coach in zip(names, coaches, strict=True) if names.count(name) == 1}
    trainers |= {normalize(coach["email"]): coach["_id"] for coach in coaches}
    rows = [_validate(source, by_name, trainers) for source in roster.rows]
    # Clients who are in an earlier row are left out; different external identifiers mean different clients.
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
    return rows


def key_of(client: customer_models.CustomerDetails) -> Key:
    """Return by what a client is found again: the e-mail address, whatever the name, or else the full name."""
    return email_key(email) if (email := client.get("email")) else name_key(client)


def email_key(email: str) -> Key:
    """Return what is the same for all spellings of an e-mail address."""
    return "email", account_key(email)


def name_key(client: customer_models.CustomerDetails | customer_models.CustomerIdentity) -> Key:
    """Return what is the same for clients with the same full name, however it is divided."""
    return "name", customers.full_name_key(client)


def _validate(source: RosterRow, answers: Mapping[str, NameAnswer], trainers: Mapping[str, ObjectId]) -> CustomerRow:
    row = CustomerRow(source)
    keys = (source.full_name, source.details["name"], source.details.get("email", ""))
    row.answer = next((answers[key] for each in keys if (key := normalize(each)) in answers), None)
    if source.surplus:
        cells = "1 more cell" if source.surplus == 1 else f"{source.surplus} more cells"
        row.reject(None, "TOO_MANY_CELLS", f"has {cells} than there are columns")
        return row
    if is_total(source.full_name):
        row.reject("name", "NOT_A_CLIENT", "is a sum, not a client")
        return row
    if row.answer == SKIP:
        row.reject("name", "SKIPPED", "is a client who is left out")
        return row
    row.problems += [cast("JobError", each) for each in source.left_out]
    sent: dict[str, Any] = dict(source.details)
    if source.trainer:
        trainer = trainers.get(normalize(source.trainer))
        if trainer is None:
            message = f"is not the e-mail address or name of one coach: {source.trainer[:50]}"
            row.report("assignedTo", _LEFT_OUT, message)
        else:
            sent["assignedTo"] = str(trainer)
    errors: list[FieldError] = []
    try:
        row.details = cast("customer_models.CustomerDetails", _SCHEMA.load(sent))
    except ValidationError as error:
        errors = field_errors(error)
    wrong = {each["field"].partition(".")[0] for each in errors}
    for each in errors:
        row.report(each["field"], each["code"] if "name" in wrong else _LEFT_OUT, each["message"])
    if errors and "name" not in wrong:  # what else is not valid is left out
        valid = {name: value for name, value in sent.items() if name not in wrong}
        row.details = cast("customer_models.CustomerDetails", _SCHEMA.load(valid))
    return row


BATCH = 200
_ORDER_OPEN: Question = {
    "code": "DATE_ORDER",
    "message": "Are birthdays such as 03/04/1990 day and month, or month and day?",
    "options": ["dmy", "mdy"],
}

_NOT_CHANGED = ("externalId", "sendInvitation")


class CustomerImport:
    """An import of a table of clients."""

    def __init__(self, progress: Progress, roster: Roster, rows: list[CustomerRow]) -> None:
        self._progress, self._roster, self._rows = progress, roster, rows
        self._named: dict[Key, ObjectId] | None = None  # the clients by name, once they are needed

    @classmethod
    async def open(cls, progress: Progress, file: IO[bytes]) -> CustomerImport:
        """Read the file. Raises UnreadableTable."""
        sent = progress.work.get("answers")
        columns = cast("Any", {each["heading"]: each["field"] for each in sent["columns"]} if sent else None)
        order, asks_for_names = (sent["dateOrder"], sent["format"] == "customers") if sent else (None, False)
        roster = await asyncio.to_thread(read_roster, file, order, columns or None, asks_for_names=asks_for_names)
        answers = import_models.by_name(sent["customers"]) if sent else {}
        coaches = await team.list_coaches(progress.ctx)
        return cls(progress, roster, await asyncio.to_thread(validate_rows, roster, answers, coaches))

    async def prepare(self) -> AsyncIterator[int]:
        """Count the rows, and report the columns that are not known. Raises ImportRefused for an open question."""
        if self._progress.work["isStarted"]:
            return
        yield 0
        if not self._rows and not self._roster.open_rows:
            raise ImportRefused("has no rows")
        for row in self._rows:
            if row.target is not None and not await customers.find_references(self._progress.ctx, [row.target]):
                raise ImportRefused("has an answer with a client who does not exist", code="NOT_FOUND")
        errors = [cast("JobError", each) for each in self._roster.problems]
        questions = [_ORDER_OPEN] if self._roster.is_order_open else []
        open_rows = self._roster.open_rows
        if open_rows:
            questions.append(ask_for_column("name", "names of the clients", self._roster.name_options))
        empty = import_models.empty_result(
            "customers", is_dry_run=self._progress.is_dry_run, rows=len(self._rows) + open_rows
        )
        kinds = count_kinds([], self._roster.problems)
        result: import_models.HistoryResult = {**empty, "questions": questions, "problems": kinds}
        plan = import_models.new_plan(result, len(errors))
        await self._progress.save({**self._progress.work, "isStarted": True, "plan": plan}, errors=errors)
        if questions and not self._progress.is_dry_run:
            raise ImportRefused(f"leaves a question open: {questions[0]['code']}. Answer it", code="QUESTIONS_OPEN")

    async def run_batch(self) -> bool:
        """Import the next rows; returns False if there are none left. Raises Superseded."""
        first = self._progress.position[1]
        rows = self._rows[first : first + BATCH]
        if not rows:
            return False
        new = await self._check(rows)
        accepted = [row for row in rows if row.details is not None]
        before = self._progress.work["plan"]["result"]
        problems = [problem for row in rows for problem in row.problems]
        result: import_models.HistoryResult = {
            **before,
            "problems": count_kinds(before.get("problems", []), cast("Sequence[Problem]", problems)),
            "imported": before["imported"] + len(accepted),
            "reported": before["reported"] + len(rows) - len(accepted),
            "created": {**before["created"], "customers": before["created"]["customers"] + new},
        }
        work: import_models.ImportWork = {
            **self._progress.work,
            "record": first + len(rows),
            "imported": {"customers": result["imported"]} if result["imported"] else {},
            "failed": result["reported"],
            "plan": import_models.new_plan(result, self._progress.work["plan"].get("problems", 0) + len(problems)),
        }

        async def write(tx: Context) -> None:
            if not self._progress.is_dry_run:
                await self._store(tx, accepted)

        await self._progress.save(work, write, done=len(rows), errors=problems)
        return True

    async def _store(self, tx: Context, rows: Sequence[CustomerRow]) -> None:
        """Store the clients of rows, in the order of the file, with their notes."""
        new = [_entry(row) for row in rows if row.target is None]
        on_conflict = self._progress.work.get("onConflict", "error")
        results = (await batch.save_many(tx, new, on_conflict))["results"] if new else []
        if any("errors" in each for each in results):  # a client was created since the check
            raise ExternalIdTaken
        ids = iter([result["_id"] for result in results])
        for row in rows:
            if row.target is not None:
                known = await customers.get_visible(tx, row.target, None)
                change = {name: value for name, value in _entry(row).items() if name not in _NOT_CHANGED}
                await customers.update_known(tx, known, cast("customer_models.CustomerChange", change))
            customer_id = row.target or next(ids)
            existing = (
                {note["content"] for note in await notes.list_of_client(tx, customer_id)} if row.source.notes else ()
            )
            for content in [escape(text).replace("\n", "<br>") for text in row.source.notes]:
                if content not in existing:
                    await notes.create(tx, customer_id, {"content": content, "isPinned": False, "isHealth": False})

    async def _check(self, rows: Sequence[CustomerRow]) -> int:
        """Leave out rows of clients whom the company has. Returns how many clients are new."""
        ctx = self._progress.ctx
        valid = [row for row in rows if row.details is not None and row.target is None]
        checked = await batch.check(ctx, [_entry(row) for row in valid], self._progress.work.get("onConflict", "error"))
        for index, errors in checked.errors.items():
            for error in errors:
                valid[index].reject(error["field"], error["code"], error["message"], error.get("_id"))
        new = [
            (row, details)
            for row in valid
            if (details := row.details) and details.get("externalId") not in checked.known
        ]
        # Of `create` the answer says that it is a new client, although the company has the same.
        candidates = [(row, details) for row, details in new if row.answer != CREATE]
        # Who has the e-mail address, or the name if there is no other identifier.
        emails = [email for _, each in candidates if (email := each.get("email"))]
        known = {email_key(each["email"] or ""): each["_id"] for each in await customers.find_by_emails(ctx, emails)}
        names = {name_key(each) for _, each in candidates if not each.get("email")}
        names -= {name_key(each) for _, each in candidates if each.get("externalId")}
        if names:
            if self._named is None:
                self._named = {name_key(each): each["_id"] for each in await customers.list_identities(ctx)}
            known |= {name: self._named[name] for name in names if name in self._named}
        for row, details in candidates:
            if (holder := known.get(key_of(details))) is not None:
                same = "e-mail address" if details.get("email") else "full name"
                message = f"is a client of the company already: the {same} is the same"
                row.reject(None, "ALREADY_EXISTS", message, holder)
        return sum(row.details is not None for row, _ in new)


def _entry(row: CustomerRow) -> customer_models.CustomerUpsert:
    status = {"isArchived": row.source.is_archived} if row.source.has_status else {}
    return cast("customer_models.CustomerUpsert", {**(row.details or {}), **status, "sendInvitation": False})
