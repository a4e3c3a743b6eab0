"""An import of a file with training history: sessions are stored in batches, each safe to interrupt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, Any, cast
from zoneinfo import ZoneInfo

from coaching_service.core.auth import EXERCISES
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.errors import Forbidden, InvalidFields, NotFound, PermissionMissing
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job, company_of
from coaching_service.integrations import background_jobs
from coaching_service.integrations.history_files.models import Problem, ProblemKind, count_kinds, merge_kinds
from coaching_service.integrations.history_files.sessions import Session
from coaching_service.integrations.history_files.survey import Survey, survey
from coaching_service.integrations.history_files.tables import UnreadableTable
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import _planning, _reading
from coaching_service.integrations.history_import import answers as stored_answers
from coaching_service.integrations.history_import import models as history_import_models
from coaching_service.library import imported_names
from coaching_service.library.exercises import service as exercises
from coaching_service.library.imported_names import CREATE, NameAnswer
from coaching_service.people import jobs, team
from coaching_service.people.customers import service as customers
from coaching_service.people.jobs import JobError, JobStatus, StoredJob
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.models import BlockSource

# --- Progress ---------------------------------------------------------------------------------------------------------
# The progress of an import: stored in the transaction that stores the records, so that nothing is imported twice.


Write = Callable[[Context], Awaitable[None]]


class HistoryRefused(Exception):
    """A file cannot be imported as it was requested; nothing more of it is stored."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.message, self.code = message, code


@dataclass(frozen=True)
class Outcome:
    """What became of some records: how many were stored (or would be), by collection; the problems; how many failed."""

    imported: Mapping[str, int] = field(default_factory=dict)
    errors: Sequence[JobError] = ()
    failed: int = 0


class Progress:
    """The job of an import, as it was after the last commit."""

    def __init__(self, ctx: Context, job: StoredJob) -> None:
        self.ctx, self._job = ctx, job

    @property
    def work(self) -> history_import_models.ImportWork:
        """What the next step needs."""
        return cast("history_import_models.ImportWork", self._job["work"])

    @property
    def job_id(self) -> ObjectId:
        """The identifier of the job."""
        return self._job["_id"]

    @property
    def position(self) -> tuple[int, int]:
        """The entry and the record to continue with."""
        return self.work["entry"], self.work["record"]

    def renew(self, ctx: Context, job: StoredJob) -> bool:
        """Continue in another step; returns False if the job is not where this process has left it."""
        work = cast("history_import_models.ImportWork", job["work"])
        if (work["entry"], work["record"], work["isStarted"]) != (*self.position, self.work["isStarted"]):
            return False
        self.ctx, self._job = ctx, job
        return True

    async def show(self, done: int, total: int) -> None:
        """Store how many rows of the file have been read, of about `total`. Raises Superseded if the job has ended."""
        fields = {"status": "running", "done": done, "total": max(done, total)}
        await jobs.update(self.ctx, self._job, fields)

    async def start(self, total: int, write: Write, errors: Sequence[JobError]) -> None:
        """Store that the file has been checked and has `total` records, with what `write` stores."""
        work: history_import_models.ImportWork = {**self.work, "isStarted": True}
        fields = {"status": "running", "total": total, "work": work}

        async def store(tx: Context) -> None:
            await jobs.update(tx, self._job, fields, errors=errors)
            await write(tx)

        await self._commit(store, work)

    async def advance(self, position: tuple[int, int], done: int, outcome: Outcome, write: Write | None = None) -> None:
        """Store that the import is at `position` after `done` more records, with what `write` stores."""
        imported = dict(self.work["imported"])
        for name, count in outcome.imported.items():
            if count:
                imported[name] = imported.get(name, 0) + count
        work: history_import_models.ImportWork = {
            **self.work,
            "entry": position[0],
            "record": position[1],
            "imported": imported,
            "failed": self.work["failed"] + outcome.failed,
        }

        async def store(tx: Context) -> None:
            await jobs.update(tx, self._job, {"work": work}, done=done, errors=outcome.errors)
            if write is not None:
                await write(tx)

        await self._commit(store, work)

    async def save(
        self,
        work: history_import_models.ImportWork,
        fields: Mapping[str, Any],
        write: Write,
        *,
        done: int = 0,
        errors: Sequence[JobError] = (),
    ) -> None:
        """Store `fields` of the job, after which its next step needs `work`, with what `write` stores.

        `write` comes first: `work`, if it is one of the fields, may be completed by it.
        """

        async def store(tx: Context) -> None:
            await write(tx)
            await jobs.update(tx, self._job, fields, done=done, errors=errors)

        await self._commit(store, work)

    async def end(self, status: JobStatus, errors: Sequence[JobError] = ()) -> None:
        """Store the result, and delete the file; what was imported before an error stays."""
        await self._commit(lambda tx: background_jobs.end(tx, self._job, status, errors), self.work)

    async def _commit(self, store: Write, work: history_import_models.ImportWork) -> None:
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
    before: history_import_models.ImportedPeriod | None, customer_id: ObjectId, days: Sequence[str], sets: int
) -> history_import_models.ImportedPeriod:
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
    ctx: Context,
    import_id: ObjectId,
    period: history_import_models.ImportedPeriod,
    event: EventType = "history.imported",
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
    period: history_import_models.ImportedPeriod = job.arguments["period"]
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
        self._content = _reading.FileContent()

    @property
    def _ctx(self) -> Context:
        return self._progress.ctx

    @property
    def _is_own(self) -> bool:
        return self._progress.work.get("isOwn", False)

    @property
    def _is_dry_run(self) -> bool:
        return self._progress.work["isDryRun"]

    async def prepare(self) -> AsyncIterator[int]:
        """Decide what becomes of the file, and create the exercises and clients that it needs.

        An import that has started only reads the sessions again. Yields how many rows have been read, when others may
        come in between. Raises UnreadableTable, and HistoryRefused if the file leaves a question open.
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
        surveying = _reading.InSlices(survey(self._file, stored_answers.reading_answers(work["answers"])))
        async for rows in surveying.run():
            yield rows
        decisions, assumed = await self._decide(surveying.result)
        refusal: HistoryRefused | None = None
        while True:
            decided = decisions.survey.answers
            reading = await self._reading(decided.date_order, decided.decimal_sign, decisions.names.decisions, assumed)
            async for rows in reading.run():
                yield rows
            if refusal is not None:
                break
            decisions = replace(decisions, names=decisions.names.for_use(reading.result.names))
            new_names = decisions.names.new_names
            if not new_names or self._is_own or EXERCISES.CREATE in self._ctx.caller.permissions:
                break
            refusal = HistoryRefused(imported_names.describe_missing(new_names), PermissionMissing.default_code)
            decisions = replace(decisions, names=decisions.names.without_new())
        self._content = reading.result
        await self._start(decisions, assumed, refusal)

    async def _decide(self, found: Survey) -> tuple[_planning.Decisions, dict[str, NameAnswer | None]]:
        """Return what is decided about the file, and what its clients stand for if open questions create them."""
        work = self._progress.work
        try:
            decisions = await _planning.decide(self._ctx, found, work["answers"], is_own=self._is_own)
        except (NotFound, Forbidden, InvalidFields) as error:
            message = error.errors[0]["message"] if isinstance(error, InvalidFields) else error.message
            raise HistoryRefused(f"cannot be imported with these answers: {message}", "INVALID_ANSWER") from None
        if not found.rows:
            raise UnreadableTable("has no rows")
        if not work.get("mayImportAll", True) and decisions.new_customers:
            raise HistoryRefused("has clients that only the owner may create", "OWNER_ONLY")
        if self._is_own and found.format not in (None, *history_import_models.OWN_FORMATS):
            raise HistoryRefused(f"is of the format {found.format}, which your coach can import", "NOT_SUPPORTED")
        asked = {each.get("name", ""): CREATE for each in decisions.customer_questions}
        return decisions, {**decisions.customers, **asked}

    async def _start(
        self,
        decisions: _planning.Decisions,
        customers: Mapping[str, NameAnswer | None],
        refusal: HistoryRefused | None,
    ) -> None:
        found, content = decisions.survey, self._content
        result = _first_result(decisions, is_dry_run=self._is_dry_run)
        result["reported"] += content.reported
        result["problems"] = merge_kinds(found.kinds, content.kinds)
        errors = _errors(found.problems, content.problems)
        if refusal is not None and self._is_dry_run:
            errors.insert(0, _of_file(self._progress.work["fileName"], refusal))
        if refusal is None and decisions.questions:
            codes = sorted({each["code"] for each in decisions.questions})
            refusal = HistoryRefused(f"leaves questions open: {', '.join(codes)}. Answer them", "QUESTIONS_OPEN")
        plan: history_import_models.HistoryPlan = {
            "exercises": stored_answers.list_answers(decisions.names.decisions),
            "customers": stored_answers.list_answers(customers),
            "dateOrder": found.answers.date_order,
            "decimalSign": found.answers.decimal_sign,
            "current": None,
            "result": result,
            "problems": found.problem_count + content.problem_count,
        }
        if refusal is not None and not self._is_dry_run:
            result["created"] = {"customers": 0, "sessions": 0, "sets": 0, "exercises": 0}
            await self._store_plan(plan, errors, None)
            raise refusal
        await self._store_plan(plan, errors, None if self._is_dry_run else decisions)

    async def _reading(
        self,
        order: DateOrder | None,
        sign: DecimalSign | None,
        exercises: Mapping[str, NameAnswer | None],
        clients: Mapping[str, NameAnswer | None],
    ) -> _reading.InSlices[_reading.FileContent]:
        """Return the reading of what the file has; the mappings are what its names stand for."""
        answers = stored_answers.reading_answers(self._progress.work["answers"], order, sign)
        known = [each for each in clients.values() if isinstance(each, ObjectId)]
        zones = await customers.find_timezones(self._ctx, known)
        default = self._ctx.caller.company.timezone

        def zone_of(client: NameAnswer | None) -> ZoneInfo:
            return ZoneInfo((zones.get(client) if isinstance(client, ObjectId) else None) or default)

        return _reading.InSlices(_reading.read_content(self._file, answers, exercises, clients, zone_of))

    async def _store_plan(
        self, plan: history_import_models.HistoryPlan, errors: Sequence[JobError], decisions: _planning.Decisions | None
    ) -> None:
        work: history_import_models.ImportWork = {**self._progress.work, "isStarted": True, "plan": plan}

        async def write(tx: Context) -> None:
            if decisions is None:
                return
            helped = decisions.survey.assisted
            made = await imported_names.create_missing(
                tx, decisions.names, assistance=helped, remember=not self._is_own
            )
            plan["exercises"] = stored_answers.list_answers(made)
            created = await _planning.create_clients(tx, decisions.new_customers)
            plan["customers"] = stored_answers.list_answers({**decisions.customers, **created})

        fields = {"status": "running", "done": 0, "total": plan["result"]["rows"], "work": work}
        await self._progress.save(work, fields, write, errors=errors)

    async def run_batch(self) -> bool:
        """Store the next sessions, or report them if their client has been erased; returns False if none are left.

        Raises HistoryRefused if the caller may no longer change the client.
        """
        plan = self._progress.work["plan"]
        content = self._content
        entry, record = self._progress.work["entry"], self._progress.work["record"]
        if entry == len(content.clients):
            return False
        name, sessions = list(content.clients.items())[entry]
        batch = _first_batch(sessions[record:])
        is_last = record + len(batch) == len(sessions)
        position = (entry + 1, 0) if is_last else (entry, record + len(batch))
        try:
            await self._store(plan, name, batch, position)
        except _StoredMeanwhile:
            return True  # look at them again
        except (NotFound, Forbidden) as error:
            client = _identifier(plan["customers"], name)
            if client is None or await customers.find_references(self._ctx, [client]):
                raise HistoryRefused(f"could not be imported completely. {error.message}", "INTERRUPTED") from None
            await self._report_erased(plan, batch, position)
        return True

    async def _report_erased(
        self, plan: history_import_models.HistoryPlan, sessions: Sequence[Session], position: tuple[int, int]
    ) -> None:
        content = _reading.FileContent()
        for session in sessions:
            content.report_session(session, _reading.CLIENT_GONE)
        counts = (content.reported, content.problem_count)
        work, fields = self._advanced(plan, [], counts, content.kinds, position, None)
        rows = sum(each.rows for each in sessions)
        await self._progress.save(work, fields, write_nothing, done=rows, errors=_errors(content.problems))

    async def _store(
        self, plan: history_import_models.HistoryPlan, name: str, sessions: Sequence[Session], position: tuple[int, int]
    ) -> None:
        ctx = self._ctx
        customer_id = _identifier(plan["customers"], name)
        target = await self._target(plan, customer_id)
        dates = sorted({str(session.day) for session in sessions})
        stored = _planning.KnownSessions(
            [] if customer_id is None else await block_batches.find_done_on(ctx, customer_id, dates)
        )
        content = _reading.FileContent()
        new: list[Session] = []
        last_day = self._ctx.caller.today(target.timezone)
        for session in sessions:
            if session.day > last_day:
                content.report_session(session, _reading.IN_THE_FUTURE)
            elif stored.has(session, target):
                content.report_session(session, _reading.ALREADY_THERE)
            else:
                new.append(session)
        left_out = [*_planning.loads_left_out(new, target), *_planning.notes_cut(new)]
        errors = _errors(content.problems, left_out)
        documents = (
            [] if self._is_dry_run else [each for session in new for each in _planning.done_sessions(session, target)]
        )
        form = plan["result"]["format"] or "sets"
        period = _extend(plan["current"], customer_id, new, form)
        is_last = position[1] == 0
        counts = (content.reported, content.reported + len(left_out))
        kinds = count_kinds(content.kinds, left_out)
        work, fields = self._advanced(plan, new, counts, kinds, position, None if is_last else period)

        async def write(tx: Context) -> None:
            if self._is_dry_run or customer_id is None:
                return
            if documents:
                await customers.lock_and_mark_figures(tx, customer_id)
                known = _planning.KnownSessions(await block_batches.find_done_on(tx, customer_id, dates))
                if any(known.has(each, target) for each in new):
                    raise _StoredMeanwhile
                source: BlockSource = {"format": form, "importId": self._progress.job_id}
                await block_batches.add_sessions(tx, customer_id, source, documents)
            if is_last and period is not None:
                await derive_and_report(tx, self._progress.job_id, period)

        await self._progress.save(work, fields, write, done=sum(each.rows for each in sessions), errors=errors)

    def _advanced(
        self,
        plan: history_import_models.HistoryPlan,
        new: Sequence[Session],
        counts: tuple[int, int],
        kinds: Sequence[ProblemKind],
        position: tuple[int, int],
        current: history_import_models.ImportedPeriod | None,
    ) -> tuple[history_import_models.ImportWork, dict[str, Any]]:
        """Return what the next step needs, and the fields of the job that differ.

        `counts` are those of rows that are reported, and of problems.
        """
        reported, problems = counts
        result: history_import_models.HistoryResult = {**plan["result"]}
        created: history_import_models.CreatedCounts = {**result["created"]}
        created["sessions"] += len(new)
        created["sets"] += _planning.count_sets(new)
        days = [str(session.day) for session in new]
        result["created"] = created
        result["problems"] = merge_kinds(result["problems"], kinds)
        result["reported"] += reported
        result["imported"] += sum(each.rows for each in new)
        result["from"] = min([*days, *([result["from"]] if result["from"] else [])], default=None)
        result["to"] = max([*days, *([result["to"]] if result["to"] else [])], default=None)
        unreported = None if self._is_dry_run else current
        counted = plan.get("problems", 0) + problems
        work: history_import_models.ImportWork = {
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

    async def _target(self, plan: history_import_models.HistoryPlan, customer_id: ObjectId | None) -> _planning.Target:
        ids = stored_answers.exercise_ids(plan["exercises"])
        known = await exercises.get_names(self._ctx, [each for each in ids.values() if each is not None])
        company, own_zone = self._ctx.caller.company, None
        if customer_id is not None:
            client = await customers.get_visible(self._ctx, customer_id, ("timezone", "customerRoleData"))
            own_zone = client["timezone"]
        return _planning.Target(ids, known, company.load_unit, own_zone or company.timezone)


async def write_nothing(_: Context) -> None:
    """Store nothing with the position of an import."""


def _first_result(decisions: _planning.Decisions, *, is_dry_run: bool) -> history_import_models.HistoryResult:
    found, names = decisions.survey, decisions.names
    return {
        **history_import_models.empty_result(found.format or "sets", is_dry_run=is_dry_run, rows=found.rows),
        "reported": found.reported,
        "created": {
            "customers": len(decisions.new_customers),
            "sessions": 0,
            "sets": 0,
            "exercises": sum(decision == CREATE for decision in names.decisions.values()),
        },
        "questions": decisions.questions,
        "names": names.names,
    }


def _identifier(answers: Sequence[history_import_models.StoredAnswer], name: str) -> ObjectId | None:
    answer = next((each["answer"] for each in answers if each["name"] == name), None)
    return answer if isinstance(answer, ObjectId) else None


def _first_batch(sessions: Sequence[Session]) -> Sequence[Session]:
    sets = 0
    for number, session in enumerate(sessions[:_BATCH_SESSIONS]):
        sets += _planning.count_sets([session])
        if sets > _BATCH_SETS and number:
            return sessions[:number]
    return sessions[:_BATCH_SESSIONS]


def _extend(
    current: history_import_models.ImportedPeriod | None,
    customer_id: ObjectId | None,
    new: Sequence[Session],
    form: str,
) -> history_import_models.ImportedPeriod | None:
    """Return what was stored for a client, with more sessions; None without any."""
    if customer_id is None or not new:
        return current
    days = [str(session.day) for session in new]
    return {**add_to_period(current, customer_id, days, _planning.count_sets(new)), "format": form}


def _of_file(file_name: str, refusal: HistoryRefused) -> JobError:
    return {"entry": file_name, "line": None, "field": None, "code": refusal.code, "message": refusal.message}


def _errors(*problems: Sequence[Problem]) -> list[JobError]:
    return [cast("JobError", each) for part in problems for each in part]
