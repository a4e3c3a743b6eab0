"""An import of a file with training history: sessions are stored in batches, each safe to interrupt."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import IO, Annotated, Any, Literal, TypedDict, cast
from zoneinfo import ZoneInfo

from coaching_service.core import validation
from coaching_service.core.auth import EXERCISES
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.recording import DocumentChange, LoggedEvent
from coaching_service.core.errors import Forbidden, InvalidFields, NotFound, PermissionMissing, invalid_field
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.fields import Description, Label, labels_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, company_of
from coaching_service.core.media import CSV
from coaching_service.core.text import neutralise
from coaching_service.integrations import background_jobs
from coaching_service.integrations.history_files import tables
from coaching_service.integrations.history_files.set_files import Survey, survey
from coaching_service.integrations.history_files.set_rows import Session
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import _planning
from coaching_service.integrations.history_import import models as import_models
from coaching_service.integrations.history_import.models import ImportRefused
from coaching_service.library import imported_names
from coaching_service.library.exercises import service as exercises
from coaching_service.library.imported_names import CREATE, NameAnswer
from coaching_service.people import jobs, team
from coaching_service.people.customers import service as customers
from coaching_service.progress import personal_records
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import BlockSource

# --- Progress ---------------------------------------------------------------------------------------------------------
# The progress of an import: stored in the transaction that stores the records, so that nothing is imported twice.


Write = Callable[[Context], Awaitable[None]]


class Progress:
    """The job of an import, as it was after the last commit."""

    def __init__(self, ctx: Context, job: jobs.StoredJob) -> None:
        self.ctx, self._job = ctx, job

    @property
    def work(self) -> import_models.ImportWork:
        """What the next step needs."""
        return cast("import_models.ImportWork", self._job["work"])

    @property
    def job_id(self) -> ObjectId:
        """The identifier of the job."""
        return self._job["_id"]

    @property
    def position(self) -> tuple[int, int]:
        """The entry and the record to continue with."""
        return self.work["entry"], self.work["record"]

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing but the job is stored."""
        return self.work["isDryRun"]

    @property
    def is_own(self) -> bool:
        """Whether a client imports the own history."""
        return self.work.get("isOwn", False)

    def renew(self, ctx: Context, job: jobs.StoredJob) -> bool:
        """Continue in another step; returns False if the job is not where this process has left it."""
        work = cast("import_models.ImportWork", job["work"])
        if (work["entry"], work["record"], work["isStarted"]) != (*self.position, self.work["isStarted"]):
            return False
        self.ctx, self._job = ctx, job
        return True

    async def show(self, done: int, total: int) -> None:
        """Store how many rows of the file have been read, of about `total`. Raises Superseded if the job has ended."""
        fields = {"status": "running", "done": done, "total": max(done, total)}
        await jobs.update(self.ctx, self._job, fields)

    async def start(self, total: int, write: Write, errors: Sequence[jobs.JobError]) -> None:
        """Store that the file has been checked and has `total` records, with what `write` stores."""
        work: import_models.ImportWork = {**self.work, "isStarted": True}
        fields = {"status": "running", "total": total, "work": work}

        async def store(tx: Context) -> None:
            await jobs.update(tx, self._job, fields, errors=errors)
            await write(tx)

        await self._commit(store, work)

    async def advance(
        self,
        position: tuple[int, int],
        done: int = 0,
        imported: Mapping[str, int] = MappingProxyType({}),
        errors: Sequence[jobs.JobError] = (),
        write: Write | None = None,
    ) -> None:
        """Store that the import is at `position` after `done` more records, with what `write` stores.

        `imported` are those that were stored (or would be) by collection; the others failed.
        """
        known, stored = self.work["imported"], {name: count for name, count in imported.items() if count}
        work: import_models.ImportWork = {
            **self.work,
            "entry": position[0],
            "record": position[1],
            "imported": {**known, **{name: known.get(name, 0) + count for name, count in stored.items()}},
            "failed": self.work["failed"] + done - sum(imported.values()),
        }

        async def store(tx: Context) -> None:
            await jobs.update(tx, self._job, {"work": work}, done=done, errors=errors)
            if write is not None:
                await write(tx)

        await self._commit(store, work)

    async def save(
        self,
        work: import_models.ImportWork,
        write: Write | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        done: int = 0,
        errors: Sequence[jobs.JobError] = (),
    ) -> None:
        """Store `fields` of the job, after which its next step needs `work`, with what `write` stores.

        `write` comes first: `work`, if it is one of the fields, may be completed by it.
        """
        known = {"work": work, "status": "running", "total": work["plan"]["result"]["rows"]}

        async def store(tx: Context) -> None:
            if write is not None:
                await write(tx)
            await jobs.update(tx, self._job, known if fields is None else fields, done=done, errors=errors)

        await self._commit(store, work)

    async def end(self, status: jobs.JobStatus, errors: Sequence[jobs.JobError] = ()) -> None:
        """Store the result, and delete the file; what was imported before an error stays."""
        await self._commit(lambda tx: background_jobs.end(tx, self._job, status, errors), self.work)

    async def _commit(self, store: Write, work: import_models.ImportWork) -> None:
        """Run `store` in a transaction; afterwards the next step needs `work`."""

        async def run(tx: Context) -> None:
            await store(tx)
            tx.changes.prevent_undo()

        await in_transaction(self.ctx, run)
        self._job["work"] = work


# --- What follows from the sessions of a client that were imported or removed: records, figures, one event ------------


_IMPORT_OPERATION = "importCompany"
UNDO_OPERATION = "undoImport"


def add_to_period(
    before: import_models.ImportedPeriod | None, customer_id: ObjectId, days: Sequence[str], sets: int
) -> import_models.ImportedPeriod:
    """Return what was stored for a client or removed, with more sessions: their days, and the number of their sets."""
    known = [before["from"], before["to"]] if before else []
    return {
        "customerId": customer_id,
        "sessions": (before["sessions"] if before else 0) + len(days),
        "sets": (before["sets"] if before else 0) + sets,
        "from": min([*days, *known]),
        "to": max([*days, *known]),
    }


async def derive_and_report(
    ctx: Context, import_id: ObjectId, period: import_models.ImportedPeriod, event: EventType = "history.imported"
) -> None:
    """Derive a client's records and figures again and report one event, in the caller's transaction.

    Raises NotFound if the client has been erased.
    """
    await personal_records.rebuild_records(ctx, period["customerId"])
    data: dict[str, EventValue] = {
        "importId": import_id,
        "sessions": period["sessions"],
        "sets": period["sets"],
        "from": period["from"],
        "to": period["to"],
    }
    ctx.changes.events.append(LoggedEvent(event, period["customerId"], data, source=period.get("format")))
    ctx.changes.prevent_undo()


async def run_step(services: Services, job: Job) -> None:
    """Follow the sessions of a client that an import had stored, or an undo removed, when it ended early."""
    period: import_models.ImportedPeriod = job.arguments["period"]
    import_id: ObjectId = job.arguments["importId"]
    undo_id: ObjectId | None = job.arguments.get("undoId")
    event: EventType = "history.removed" if undo_id else "history.imported"
    operation, job_id = (UNDO_OPERATION, undo_id) if undo_id else (_IMPORT_OPERATION, import_id)
    try:
        owner = await team.get_owner(services, company_of(job))
        ctx = Context(services, operation=operation, batch_id=job_id).acting_as(owner)
        ctx = await jobs.as_requested(ctx, await jobs.find_readers(ctx, job_id)) or ctx
        await in_transaction(ctx, lambda tx: derive_and_report(tx, import_id, period, event))
    except NotFound:  # the client or the company has been erased
        return


# What is stored at once: more keeps the requests of others waiting.
_BATCH_SESSIONS, _BATCH_SETS = 10, 200
# The fields of a result that change with each batch.
_COUNTED = ("created", "reported", "imported", "from", "to", "problems")


class _StoredMeanwhile(Exception):
    """Another import has stored some of the sessions since they were looked for."""


class HistoryImport:
    """An import of a file with sessions."""

    def __init__(self, progress: Progress, file: IO[bytes]) -> None:
        self._progress, self._file = progress, file
        self._content = _planning.FileContent()

    async def prepare(self) -> AsyncIterator[int]:
        """Decide what becomes of the file, and create the exercises and clients that it needs.

        An import that has started only reads the sessions again. Yields how many rows have been read, when others may
        come in between. Raises UnreadableTable, and ImportRefused if the file leaves a question open.
        """
        work = self._progress.work
        if work["isStarted"]:
            plan = work["plan"]
            names, clients = (
                {each["name"]: each["answer"] for each in answers} for answers in (plan["exercises"], plan["customers"])
            )
            again = await self._reading(plan["dateOrder"], plan.get("decimalSign"), names, clients)
            async for rows in again.run():
                yield rows
            self._content = again.result
            return
        surveying = _planning.InSlices(survey(self._file, import_models.reading_answers(work["answers"])))
        async for rows in surveying.run():
            yield rows
        decisions, assumed = await self._decide(surveying.result)
        refusal: ImportRefused | None = None
        while True:
            decided = decisions.survey.answers
            reading = await self._reading(decided.date_order, decided.decimal_sign, decisions.names.decisions, assumed)
            async for rows in reading.run():
                yield rows
            if refusal is not None:
                break
            decisions = replace(decisions, names=decisions.names.for_use(reading.result.names))
            new_names = decisions.names.new_names
            if not new_names or self._progress.is_own or EXERCISES.CREATE in self._progress.ctx.caller.permissions:
                break
            refusal = ImportRefused(imported_names.describe_missing(new_names), code=PermissionMissing.default_code)
            decisions = replace(decisions, names=decisions.names.without_new())
        self._content = reading.result
        await self._start(decisions, assumed, refusal)

    async def _decide(self, found: Survey) -> tuple[_planning.Decisions, dict[str, NameAnswer | None]]:
        """Return what is decided about the file, and what its clients stand for if open questions create them."""
        work = self._progress.work
        try:
            sent = import_models.by_name(work["answers"]["names"])
            names = await imported_names.resolve_names(self._progress.ctx, found.exercises, sent)
            decided, questions = await _planning.decide_customers(
                self._progress.ctx, found, work["answers"], is_own=self._progress.is_own
            )
        except (NotFound, Forbidden, InvalidFields) as error:
            message = error.errors[0]["message"] if isinstance(error, InvalidFields) else error.message
            raise ImportRefused(f"cannot be imported with these answers: {message}", code="INVALID_ANSWER") from None
        decisions = _planning.Decisions(found, names, decided, [*found.questions, *questions])
        if not found.rows:
            raise tables.UnreadableTable("has no rows")
        if not work.get("mayImportAll", True) and decisions.new_customers:
            raise ImportRefused("has clients that only the owner may create", code="OWNER_ONLY")
        if self._progress.is_own and found.format not in (None, *import_models.OWN_FORMATS):
            raise ImportRefused(f"is of the format {found.format}, which your coach can import", code="NOT_SUPPORTED")
        asked = {each.get("name", ""): CREATE for each in decisions.questions if each["code"] == "CUSTOMER"}
        return decisions, {**decisions.customers, **asked}

    async def _start(
        self, decisions: _planning.Decisions, customers: import_models.Meanings, refusal: ImportRefused | None
    ) -> None:
        found, content = decisions.survey, self._content
        names = decisions.names
        result: import_models.HistoryResult = {
            **import_models.empty_result(found.format or "sets", is_dry_run=self._progress.is_dry_run, rows=found.rows),
            "reported": found.reported + content.reported,
            "questions": decisions.questions,
            "problems": tables.merge_kinds(found.kinds, content.kinds),
            "names": names.names,
        }
        errors = _errors(found.problems, content.problems)
        if refusal is not None and self._progress.is_dry_run:
            entry = self._progress.work["fileName"]
            errors.insert(0, background_jobs.problem_of_file(entry, refusal.code, refusal.message))
        if refusal is None and decisions.questions:
            codes = sorted({each["code"] for each in decisions.questions})
            refusal = ImportRefused(f"leaves questions open: {', '.join(codes)}. Answer them", code="QUESTIONS_OPEN")
        is_refused = refusal is not None and not self._progress.is_dry_run
        if not is_refused:
            result["created"]["customers"] = len(decisions.new_customers)
            result["created"]["exercises"] = sum(decision == CREATE for decision in names.decisions.values())
        plan = import_models.new_plan(result, found.problem_count + content.problem_count, names.decisions, customers)
        plan["dateOrder"], plan["decimalSign"] = found.answers.date_order, found.answers.decimal_sign
        work: import_models.ImportWork = {**self._progress.work, "isStarted": True, "plan": plan}

        async def write(tx: Context) -> None:
            if is_refused or self._progress.is_dry_run:
                return
            made = await imported_names.create_missing(
                tx, names, assistance=found.assisted, remember=not self._progress.is_own
            )
            plan["exercises"] = import_models.list_answers(made)
            created = await _planning.create_clients(tx, decisions.new_customers)
            plan["customers"] = import_models.list_answers({**decisions.customers, **created})

        fields = {"status": "running", "done": 0, "total": found.rows, "work": work}
        await self._progress.save(work, write, fields, errors=errors)
        if refusal is not None and not self._progress.is_dry_run:
            raise refusal

    async def _reading(
        self,
        order: DateOrder | None,
        sign: DecimalSign | None,
        exercises: import_models.Meanings,
        clients: import_models.Meanings,
    ) -> _planning.InSlices[_planning.FileContent]:
        """Return the reading of what the file has; the mappings are what its names stand for."""
        answers = import_models.reading_answers(self._progress.work["answers"], order, sign)
        known = [each for each in clients.values() if isinstance(each, ObjectId)]
        zones = await customers.find_timezones(self._progress.ctx, known)
        default = self._progress.ctx.caller.company.timezone

        def zone_of(client: NameAnswer | None) -> ZoneInfo:
            return ZoneInfo((zones.get(client) if isinstance(client, ObjectId) else None) or default)

        return _planning.InSlices(_planning.read_content(self._file, answers, exercises, clients, zone_of))

    async def run_batch(self) -> bool:
        """Store the next sessions, or report them if their client has been erased; returns False if none are left.

        Raises ImportRefused if the caller may no longer change the client.
        """
        plan = self._progress.work["plan"]
        content = self._content
        entry, record = self._progress.work["entry"], self._progress.work["record"]
        if entry == len(content.clients):
            return False
        name, sessions = list(content.clients.items())[entry]
        batch: list[Session] = []
        for session in sessions[record : record + _BATCH_SESSIONS]:
            if batch and _planning.count_sets([*batch, session]) > _BATCH_SETS:
                break
            batch.append(session)
        is_last = record + len(batch) == len(sessions)
        position = (entry + 1, 0) if is_last else (entry, record + len(batch))
        try:
            await self._store(plan, name, batch, position)
        except _StoredMeanwhile:
            return True  # look at them again
        except (NotFound, Forbidden) as error:
            client = _identifier(plan["customers"], name)
            if client is None or await customers.find_references(self._progress.ctx, [client]):
                raise ImportRefused(f"could not be imported completely. {error.message}", code="INTERRUPTED") from None
            gone = _planning.FileContent()
            for session in batch:
                gone.report_session(session, _planning.CLIENT_GONE)
            work, fields = self._advanced(plan, [], gone, position, None)
            rows = sum(each.rows for each in batch)
            await self._progress.save(work, None, fields, done=rows, errors=_errors(gone.problems))
        return True

    async def _store(
        self, plan: import_models.HistoryPlan, name: str, sessions: Sequence[Session], position: tuple[int, int]
    ) -> None:
        ctx = self._progress.ctx
        customer_id = _identifier(plan["customers"], name)
        ids = import_models.exercise_ids(plan["exercises"])
        known = await exercises.get_names(ctx, [each for each in ids.values() if each is not None])
        company, zone = ctx.caller.company, None
        if customer_id is not None:
            zone = (await customers.get_visible(ctx, customer_id, ("timezone", "customerRoleData")))["timezone"]
        target = _planning.Target(ids, known, company.load_unit, zone or company.timezone)
        dates = sorted({str(session.day) for session in sessions})
        stored = _planning.KnownSessions(
            [] if customer_id is None else await batches.find_done_on(ctx, customer_id, dates)
        )
        content = _planning.FileContent()
        new: list[Session] = []
        last_day = ctx.caller.today(target.timezone)
        for session in sessions:
            if session.day > last_day:
                content.report_session(session, _planning.IN_THE_FUTURE)
            elif stored.has(session, target):
                content.report_session(session, _planning.ALREADY_THERE)
            else:
                new.append(session)
        content.report(_planning.find_cut(new, target))
        documents = (
            []
            if self._progress.is_dry_run
            else [each for session in new for each in _planning.done_sessions(session, target)]
        )
        form = plan["result"]["format"] or "sets"
        period = plan["current"]
        if customer_id is not None and new:
            days = [str(session.day) for session in new]
            period = {**add_to_period(period, customer_id, days, _planning.count_sets(new)), "format": form}
        is_last = position[1] == 0
        work, fields = self._advanced(plan, new, content, position, None if is_last else period)

        async def write(tx: Context) -> None:
            if self._progress.is_dry_run or customer_id is None:
                return
            if documents:
                await customers.lock_and_mark_figures(tx, customer_id)
                meanwhile = _planning.KnownSessions(await batches.find_done_on(tx, customer_id, dates))
                if any(meanwhile.has(each, target) for each in new):
                    raise _StoredMeanwhile
                source: BlockSource = {"format": form, "importId": self._progress.job_id}
                await batches.add_sessions(tx, customer_id, source, documents)
            if is_last and period is not None:
                await derive_and_report(tx, self._progress.job_id, period)

        rows = sum(each.rows for each in sessions)
        await self._progress.save(work, write, fields, done=rows, errors=_errors(content.problems))

    def _advanced(
        self,
        plan: import_models.HistoryPlan,
        new: Sequence[Session],
        content: _planning.FileContent,
        position: tuple[int, int],
        current: import_models.ImportedPeriod | None,
    ) -> tuple[import_models.ImportWork, dict[str, Any]]:
        """Return what the next step needs, and the fields of the job that differ."""
        result: import_models.HistoryResult = {**plan["result"]}
        created: import_models.CreatedCounts = {**result["created"]}
        created["sessions"] += len(new)
        created["sets"] += _planning.count_sets(new)
        days = [str(session.day) for session in new]
        result["created"] = created
        result["problems"] = tables.merge_kinds(result["problems"], content.kinds)
        result["reported"] += content.reported
        result["imported"] += sum(each.rows for each in new)
        result["from"] = min([*days, *([result["from"]] if result["from"] else [])], default=None)
        result["to"] = max([*days, *([result["to"]] if result["to"] else [])], default=None)
        unreported = None if self._progress.is_dry_run else current
        counted = plan.get("problems", 0) + content.problem_count
        work: import_models.ImportWork = {
            **self._progress.work,
            "entry": position[0],
            "record": position[1],
            "plan": {**plan, "current": unreported, "result": result, "problems": counted},
        }
        fields = {
            "work.entry": position[0],
            "work.record": position[1],
            "work.plan.current": unreported,
            "work.plan.problems": counted,
            **{f"work.plan.result.{name}": value for name, value in result.items() if name in _COUNTED},
        }
        return work, fields


def _identifier(answers: Sequence[import_models.StoredAnswer], name: str) -> ObjectId | None:
    answer = next((each["answer"] for each in answers if each["name"] == name), None)
    return answer if isinstance(answer, ObjectId) else None


def _errors(*problems: Sequence[tables.Problem]) -> list[jobs.JobError]:
    return [cast("jobs.JobError", each) for part in problems for each in part]


# --- Rows of sets that a caller has read, from a paper or a picture: imported like a file with these rows -------------


class _Performed(TypedDict):
    date: Annotated[str, validation.CalendarDate(), Description("YYYY-MM-DD."), Label("Date")]
    exercise: Annotated[str, validation.Text(), Description("As written."), Label("Exercise")]


class RowToImport(_Performed, total=False):
    """Sets that were done: one, or `sets` equal ones. The labels are headings that the format `sets` reads."""

    workout: Annotated[str | None, validation.Text(), Description("Title."), Label("Workout")]
    sets: Annotated[int | None, validation.Integer(minimum=1, maximum=50), Description("Default 1."), Label("Sets")]
    reps: Annotated[int | None, validation.Integer(minimum=0, maximum=10_000), Description("Of a set."), Label("Reps")]
    seconds: Annotated[
        float | None, validation.Number(minimum=0, maximum=1e6), Description("Seconds."), Label("Seconds")
    ]
    meters: Annotated[
        float | None, validation.Number(minimum=0, maximum=1e6), Description("Meters."), Label("Distance (m)")
    ]
    rpe: Annotated[float | None, validation.Number(minimum=1, maximum=10), Description("RPE."), Label("RPE")]
    setKind: Annotated[
        Literal["normal", "warmup", "drop", "failure"] | None, Description("Kind of set."), Label("Set type")
    ]
    notes: Annotated[str | None, validation.Text(max_length=1_000), Description("Notes."), Label("Notes")]
    load: Annotated[
        float | None,
        validation.Number(minimum=-10_000, maximum=10_000),
        Description("Negative: assistance."),
        Label("Weight"),
    ]


_HEADINGS = labels_of(RowToImport)


@dataclass(frozen=True)
class ImportedRows:
    """What became of rows; `job_id` is None if nothing was stored. `sessions`: the new ones."""

    job_id: ObjectId | None
    result: import_models.HistoryResult
    problems: Sequence[jobs.JobError]
    sessions: Sequence[DocumentChange] = ()


async def import_rows(
    ctx: Context, rows: Sequence[RowToImport], answers: import_models.ImportAnswers, *, dry_run: bool
) -> ImportedRows:
    """Import rows of a client, in the caller's transaction, as a job that has ended and can be undone.

    Raises InvalidFields if a question is open, but for a dry run; NotFound and Forbidden about the client.
    """
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(_HEADINGS.values())
    writer.writerows([neutralise(row.get(name)) for name in _HEADINGS] for row in rows)
    known: import_models.ImportAnswers = {**answers, "format": "sets", "decimalSign": "."}
    work = import_models.new_work(known, file_name="Rows of an assistant", content_type=CSV, dry_run=dry_run)
    progress = _Once(ctx, {**work, "mayImportAll": False, "isOwn": False})
    importing = HistoryImport(progress, io.BytesIO(file.getvalue().encode()))
    try:
        async for _ in importing.prepare():
            pass
        while await importing.run_batch():
            pass
    except ImportRefused as error:
        raise invalid_field("rows", error.message, code=error.code) from None
    result = import_models.complete(progress.work["plan"]["result"])
    if dry_run:
        return ImportedRows(None, result, progress.problems)
    job: jobs.NewJob = {"kind": "import", "work": progress.work, "requestedBy": ctx.caller.id, "customerId": None}
    await jobs.record_ended(ctx, progress.job_id, job, result["rows"], result, progress.problems)
    sessions = await batches.list_new(ctx, progress.job_id)
    return ImportedRows(progress.job_id, result, progress.problems, sessions)


class _Once(Progress):
    """An import within one transaction: its position is not stored, and it has the identifier of its change."""

    def __init__(self, ctx: Context, work: import_models.ImportWork) -> None:
        super().__init__(ctx, cast("jobs.StoredJob", {"_id": ctx.changes.id, "work": work}))
        self.problems: list[jobs.JobError] = []

    async def save(
        self,
        work: import_models.ImportWork,
        write: Write | None = None,
        fields: Mapping[str, Any] | None = None,
        *,
        done: int = 0,
        errors: Sequence[jobs.JobError] = (),
    ) -> None:
        """Write, and keep what the next step needs."""
        if write is not None:
            await write(self.ctx)
        self._job["work"] = work
        self.problems += errors
