"""Importing a table of body measurements: each becomes the value of a metric, as it is recorded by hand."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, cast
from zoneinfo import ZoneInfo

from coaching_service.core.auth import METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden, InvalidFields, NotFound, PermissionMissing
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import measurements, tables
from coaching_service.integrations.history_files.set_files import Survey, add_clients
from coaching_service.integrations.history_import import models as import_models
from coaching_service.integrations.history_import._planning import (
    CLIENT_GONE,
    IN_THE_FUTURE,
    InSlices,
    decide_customers,
)
from coaching_service.integrations.history_import.importing import Progress
from coaching_service.integrations.history_import.models import ImportRefused
from coaching_service.library import metric_sets
from coaching_service.library.imported_names import CREATE, SKIP, NameAnswer
from coaching_service.people.account import convert_entered_load
from coaching_service.people.customers import service as customers
from coaching_service.people.jobs import JobError
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.service import NewMetricEntry

_BATCH = 200  # values that are stored at once
_NEAREST, _MOST_OPTIONS, _MOST_VALUE = 3, 200, 1e12
_NEVER_ZERO = ("kg", "lb", "cm", "in")
_ANSWERED = {"LOAD_UNIT": "loadUnit", "DISTANCE_UNIT": "distanceUnit", "DURATION_UNIT": "durationUnit"}
_KINDS = {"LOAD_UNIT": "weights", "DISTANCE_UNIT": "lengths", "DURATION_UNIT": "durations"}


class _StoredMeanwhile(Exception):
    """A value was recorded, or an assignment ended, since it was read."""


@dataclass
class _Planned:
    """A row with the values that it becomes, each with its name in the file."""

    source: measurements.MeasuredRow
    customer_id: ObjectId | None = None
    values: list[tuple[str, NewMetricEntry]] = field(default_factory=list)


@dataclass(frozen=True)
class _Known:
    """The values that a client has on some days, which assignments of sets have ended, and the client's today."""

    values: Mapping[tuple[ObjectId, str], float]
    ended: Mapping[ObjectId, bool]
    today: str


class MeasurementImport:
    """An import of a table of measurements."""

    def __init__(self, progress: Progress, file: IO[bytes]) -> None:
        self._progress, self._file = progress, file
        self._rows: list[_Planned] = []
        self._known: dict[ObjectId, tuple[ObjectId, metric_sets.Metric]] = {}  # metrics with their sets

    @classmethod
    async def recognises(cls, progress: Progress, file: IO[bytes]) -> bool:
        """Return whether a file is a table of measurements."""
        answers = progress.work.get("answers")
        if answers is None or answers["format"] is not None:
            return answers is not None and answers["format"] == "measurements"
        names = [metric["name"] for each in await metric_sets.list_all(progress.ctx) for metric in each["metrics"]]
        sent = import_models.reading_answers(answers)
        return await asyncio.to_thread(measurements.is_of_measurements, file, sent, names)

    async def prepare(self) -> AsyncIterator[int]:
        """Read the file, and decide what it means unless the import has started.

        Raises UnreadableTable, and ImportRefused if the file leaves a question open.
        """
        work, ctx = self._progress.work, self._progress.ctx
        if work.get("isOwn"):
            raise ImportRefused("is a table of measurements, which your coach can import", code="NOT_SUPPORTED")
        if METRICS.EDIT not in ctx.caller.permissions:
            message = f"is a table of measurements: recording them needs the permission {METRICS.EDIT}"
            raise ImportRefused(message, code=PermissionMissing.default_code)
        sets = await metric_sets.list_all(ctx)
        self._known = {metric["_id"]: (each["_id"], metric) for each in sets for metric in each["metrics"]}
        answers, plan = work["answers"], work["plan"] if work["isStarted"] else None
        sent = import_models.reading_answers(
            answers, plan["dateOrder"] if plan else None, plan.get("decimalSign") if plan else None
        )
        names = [metric["name"] for _, metric in self._known.values()]
        takes_any = answers["format"] == "measurements"
        reading = InSlices(measurements.read_measurements(self._file, sent, names, takes_any=takes_any))
        async for rows in reading.run():
            yield rows
        found = reading.result
        if plan is not None:
            names_of, clients_of = (
                {each["name"]: each["answer"] for each in known} for known in (plan["exercises"], plan["customers"])
            )
            await self._plan(found, names_of, clients_of)
            return
        if not found.rows:
            raise tables.UnreadableTable("has no rows")
        survey = Survey(sent)
        add_clients(survey, found.people)
        meant, questions = self._decide_metrics(found)
        try:
            clients, asked = await decide_customers(ctx, survey, answers, is_own=False)
        except (NotFound, Forbidden) as error:
            raise ImportRefused(
                f"cannot be imported with these answers: {error.message}", code="INVALID_ANSWER"
            ) from None
        if CREATE in clients.values():
            raise ImportRefused("has measurements, which create no clients: answer with one", code="INVALID_ANSWER")
        questions += [*found.questions, *map(_without_create, asked)]
        questions += await self._plan(found, meant, clients)
        result: import_models.HistoryResult = {
            **import_models.empty_result("measurements", is_dry_run=work["isDryRun"], rows=len(found.rows)),
            "questions": questions,
            "problems": tables.merge_kinds(tables.count_kinds([], found.sheets), found.unread),
        }
        result["created"]["values"] = 0
        started = import_models.new_plan(result, len(found.sheets), meant, clients)
        started["dateOrder"], started["decimalSign"] = found.date_order, found.decimal_sign
        await self._progress.save({**work, "isStarted": True, "plan": started}, errors=_listed(found.sheets))
        if questions and not work["isDryRun"]:
            codes = ", ".join(sorted({each["code"] for each in questions}))
            raise ImportRefused(f"leaves questions open: {codes}. Answer them", code="QUESTIONS_OPEN")

    def _decide_metrics(
        self, found: measurements.Measurements
    ) -> tuple[dict[str, NameAnswer | None], list[tables.Question]]:
        """Return the metric of each name, by its words, and the questions about names that mean none, or several."""
        sent = import_models.by_name(self._progress.work["answers"]["names"])
        answered = {measurements.split_unit(name)[0]: answer for name, answer in sent.items()}
        spelled: dict[str, list[str]] = {}
        for name in found.names:
            spelled.setdefault(measurements.split_unit(name)[0], []).append(name)
        meant: dict[str, NameAnswer | None] = {}
        questions: list[tables.Question] = []
        for key, spellings in spelled.items():
            answer = answered.get(key)
            if answer == CREATE or (isinstance(answer, ObjectId) and answer not in self._known):
                message = f"cannot be imported with these answers: {spellings[0]} must be a metric or skip"
                raise ImportRefused(message, code="INVALID_ANSWER")
            # The metrics with the name, else those with a usual name for the same.
            units = {unit for each in spellings if (unit := measurements.split_unit(each)[1]) is not None}
            usable = {
                metric_id: metric["name"]
                for metric_id, (_, metric) in self._known.items()
                if all(measurements.convert(1, each, metric["metricUnit"]["shortName"]) is not None for each in units)
            }
            meaning = measurements.meaning_of(key)
            candidates = [each for each, name in usable.items() if measurements.split_unit(name)[0] == key] or [
                each for each, name in usable.items() if measurements.meaning_of(name) == meaning
            ]
            if answer is None and len(candidates) == 1:
                answer = candidates[0]
            if answer is None:
                near = {normalize(metric["name"]): metric_id for metric_id, (_, metric) in self._known.items()}
                closest = [near[each] for each in difflib.get_close_matches(normalize(spellings[0]), near, n=_NEAREST)]
                offered = list(dict.fromkeys([*candidates, *closest, *self._known]))[:_MOST_OPTIONS]
                named = [self._known[each][1] for each in offered]
                labels = [*(f"{each['name']} ({each['metricUnit']['shortName']})" for each in named), "Leave out"]
                question: tables.Question = {
                    "code": "METRIC",
                    "message": f"Which metric is {spellings[0]}?",
                    "options": [*map(str, offered), SKIP],
                    "name": spellings[0],
                    "labels": labels,
                }
                questions.append(question)
            meant[key] = answer
        return meant, questions

    async def _plan(
        self, found: measurements.Measurements, meant: import_models.Meanings, clients: import_models.Meanings
    ) -> list[tables.Question]:
        """Decide what each row becomes; returns the questions about units."""
        ctx, answers = self._progress.ctx, self._progress.work["answers"]
        known = [each for each in clients.values() if isinstance(each, ObjectId)]
        zones, default = await customers.find_timezones(ctx, known), ctx.caller.company.timezone
        survey = Survey(import_models.reading_answers(answers))
        add_clients(survey, found.people)
        labels = {(normalize(each.name), each.id): label for label, each in survey.clients.items()}
        units: dict[str, str] = {}  # the first name without a unit, by the question
        seen: dict[tuple[ObjectId, ObjectId, str], float] = {}
        for row in found.rows:
            client = self._client_of(row, labels[normalize(row.client), row.client_id], clients)
            planned = _Planned(row, client)
            self._rows.append(planned)
            day = row.day
            if row.instant is not None and client is not None:
                day = row.instant.astimezone(ZoneInfo(zones.get(client) or default)).date()
            for value in row.values if client is not None and (day is not None or row.is_open) else ():
                read = self._value_of(row, value, meant, units)
                if read is None or day is None or client is None:
                    continue
                metric_id, amount = read
                earlier = seen.get((client, metric_id, str(day)))
                if earlier == amount:
                    row.report(value.name, "ALREADY_THERE", "is in an earlier row or column of the file")
                elif earlier is not None:
                    row.report(value.name, "OTHER_VALUE", "has another value of this day in the file")
                else:
                    seen[client, metric_id, str(day)] = amount
                    entry: NewMetricEntry = {"metricId": metric_id, "date": str(day), "value": amount}
                    planned.values.append((value.name, entry))
        places = {each: place for place, each in enumerate(dict.fromkeys(each.customer_id for each in self._rows))}
        self._rows.sort(key=lambda each: places[each.customer_id])
        return [
            {
                "code": code,
                "message": f"In which unit are the {_KINDS[code]} of this file, such as {units[code]}?",
                "options": list(options),
            }
            for code, options in measurements.UNITS_ASKED.items()
            if code in units
        ]

    def _client_of(self, row: measurements.MeasuredRow, label: str, clients: import_models.Meanings) -> ObjectId | None:
        """Return the client whose row it is; reports a row without one, unless a question about it is open."""
        work = self._progress.work
        client = clients.get(label)
        if isinstance(client, ObjectId):
            return client
        if client == SKIP:
            row.report("customer", "SKIPPED", "is of a client who is left out")
        elif label in clients and work["answers"]["customerId"] is not None:
            row.report("customer", "OTHER_CLIENT", "is of another client than the import is for")
        elif label not in clients and not label:
            row.report("customer", "REQUIRED", "is empty")
        elif label not in clients and work["isStarted"]:
            row.report(*CLIENT_GONE)
        else:
            row.is_open = True
        return None

    def _value_of(
        self,
        row: measurements.MeasuredRow,
        value: measurements.Measured,
        meant: import_models.Meanings,
        units: dict[str, str],
    ) -> tuple[ObjectId, float] | None:
        """Return the metric of a value and the value in its unit, or None for one that is reported or open.

        `units` has the first name for each unit that has to be asked for.
        """
        metric_id = meant.get(measurements.split_unit(value.name)[0], SKIP)
        if metric_id is None:
            row.is_open = True
            return None
        if not isinstance(metric_id, ObjectId) or metric_id not in self._known:
            row.report(value.name, "SKIPPED", "is a measurement that is left out")
            return None
        metric = self._known[metric_id][1]
        target = metric["metricUnit"]["shortName"]
        unit = value.unit
        if unit is None and measurements.has_kind(target):
            code = next((each for each, asked in measurements.UNITS_ASKED.items() if target in asked), None)
            if code is None:
                row.report(value.name, "VALUE_LEFT_OUT", f"has no unit: write {value.name} ({target})")
                return None
            unit = cast("str | None", self._progress.work["answers"].get(_ANSWERED[code]))
            if unit not in measurements.UNITS_ASKED[code]:
                units.setdefault(code, value.name)
                row.is_open = True
                return None
        convert = convert_entered_load if {unit, target} == {"kg", "lb"} else measurements.convert
        amount = convert(value.amount, unit or target, target)
        problem = f"is in {unit}, and the metric {metric['name']} in {target}"
        if amount is None or (problem := _problem_of(amount, metric)):
            row.report(value.name, "VALUE_LEFT_OUT", problem)
            return None
        return metric_id, amount

    async def run_batch(self) -> bool:
        """Store the values of the next rows of a client; returns False if there are none left."""
        first, count = self._progress.position[1], 0
        rows: list[_Planned] = []  # of the same client, with at most so many values
        for row in self._rows[first : first + _BATCH]:
            count += len(row.values)
            if rows and (count > _BATCH or row.customer_id != rows[0].customer_id):
                break
            rows.append(row)
        if rows:
            with suppress(_StoredMeanwhile):  # look at them again
                await self._run(rows, first + len(rows))
        return bool(rows)

    async def _run(self, rows: Sequence[_Planned], position: int) -> None:
        ctx, customer_id = self._progress.ctx, rows[0].customer_id
        known: _Known | None = None
        try:
            known = await self._look(ctx, rows)
        except (NotFound, Forbidden) as error:
            if customer_id is None or await customers.find_references(ctx, [customer_id]):
                raise ImportRefused(f"could not be imported completely. {error.message}", code="INTERRUPTED") from None
        new: list[NewMetricEntry] = []
        problems: list[tables.Problem] = []
        before = self._progress.work["plan"]
        result: import_models.HistoryResult = {**before["result"]}
        for row in rows:
            accepted, of_row = self._accept(row, known)
            new += accepted
            problems += of_row
            result["imported"] += bool(accepted)
            result["reported"] += not accepted and not row.source.is_open
        days = [each["date"] for each in new]
        result["created"] = {**result["created"], "values": result["created"].get("values", 0) + len(new)}
        result["problems"] = tables.count_kinds(result["problems"], problems)
        result["from"] = min([*days, *filter(None, [result["from"]])], default=None)
        result["to"] = max([*days, *filter(None, [result["to"]])], default=None)
        count = before.get("problems", 0) + len(problems)
        plan: import_models.HistoryPlan = {**before, "result": result, "problems": count}
        work: import_models.ImportWork = {**self._progress.work, "record": position, "plan": plan}

        async def write(tx: Context) -> None:
            if self._progress.is_dry_run or not new or customer_id is None or known is None:
                return
            await customers.lock_and_mark_figures(tx, customer_id)
            if await self._look(tx, rows) != known:
                raise _StoredMeanwhile
            for set_id in dict.fromkeys(self._known[each["metricId"]][0] for each in new):
                if set_id not in known.ended:
                    await metrics.assign(tx, customer_id, set_id)
            await metrics.record_many(tx, customer_id, new)

        await self._progress.save(work, write, done=len(rows), errors=_listed(problems))

    def _accept(self, row: _Planned, known: _Known | None) -> tuple[list[NewMetricEntry], list[tables.Problem]]:
        """Return the values of a row to record, and its problems; `known` is None without the client."""
        accepted: list[NewMetricEntry] = []
        source = replace(row.source, problems=[*row.source.problems])
        for name, entry in row.values:
            recorded = None if known is None else known.values.get((entry["metricId"], entry["date"]))
            if known is None:
                source.report(*CLIENT_GONE)
            elif entry["date"] > known.today:
                source.report(*IN_THE_FUTURE)
            elif recorded == entry["value"]:
                source.report(name, "ALREADY_THERE", "is there already")
            elif recorded is not None:
                source.report(name, "OTHER_VALUE", "has another value of this day already, which stays")
            elif known.ended.get(self._known[entry["metricId"]][0]):
                source.report(name, "NOT_ASSIGNED", "is of a metric set that the client is no longer assigned")
            else:
                accepted.append(entry)
        return accepted, source.problems

    async def _look(self, ctx: Context, rows: Sequence[_Planned]) -> _Known:
        customer_id = rows[0].customer_id
        if customer_id is None:
            return _Known({}, {}, "")
        entries = [entry for row in rows for _, entry in row.values]
        metric_ids = {each["metricId"] for each in entries}
        recorded = await metrics.find_values(ctx, customer_id, metric_ids, {each["date"] for each in entries})
        ended = await metrics.find_ended(ctx, customer_id, {self._known[each][0] for each in metric_ids})
        client = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
        return _Known(recorded, ended, str(ctx.caller.today(client["timezone"])))


def _listed(problems: Sequence[tables.Problem]) -> list[JobError]:
    return [cast("JobError", each) for each in problems[: tables.MAX_PROBLEMS]]


def _without_create(question: tables.Question) -> tables.Question:
    """Return a question about a client without the option to create one."""
    labels = question.get("labels")
    if CREATE not in question["options"] or labels is None:
        return question
    at = question["options"].index(CREATE)
    options = question["options"][:at] + question["options"][at + 1 :]
    return {**question, "options": options, "labels": labels[:at] + labels[at + 1 :]}


def _problem_of(amount: float, metric: metric_sets.Metric) -> str:
    """Return why a value cannot be recorded; empty if it can."""
    if abs(amount) > _MOST_VALUE:
        return "is too large"
    if amount == 0 and metric["metricUnit"]["shortName"] in _NEVER_ZERO:
        return "is zero"
    try:
        metrics.require_possible(metric, amount, "value")
    except InvalidFields as error:
        return error.errors[0]["message"]
    return ""
