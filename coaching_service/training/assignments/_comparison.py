"""How the copies of a program on a client's calendar differ from the program as it is now."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

from coaching_service.core.ids import ObjectId
from coaching_service.training.assignments.models import Shift, StoredAssignment
from coaching_service.training.assignments.sync_models import SyncState
from coaching_service.training.programs.models import ProgramName
from coaching_service.training.programs.service import date_blocks
from coaching_service.training.workouts.blocks.done_work import has_nothing_done
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.blocks.program_copies import find_program_date, summarize_copy, summarize_plan
from coaching_service.training.workouts.blocks.service import shift_date


@dataclass(frozen=True)
class ProgramNow:
    """A program with its blocks, by day, and the summary of what is planned in each."""

    program: ProgramName
    blocks: list[StoredBlock]
    plans: Mapping[ObjectId, str]

    @staticmethod
    def of(program: ProgramName, blocks: list[StoredBlock]) -> ProgramNow:
        """Return a program with the summaries of its blocks."""
        return ProgramNow(program, blocks, {block["_id"]: summarize_plan(block) for block in blocks})


@dataclass(frozen=True)
class Comparison:
    """A block of a program (None: the program no longer has it) and its copy (None: the client has none).

    `program_date` is the date that the program has for it now, `date` the same with the shifts of the schedule, and
    `new_date` the one on which it would be: where a client has moved it, if the program has not.
    """

    state: SyncState
    source: StoredBlock | None
    copy: StoredBlock | None
    program_date: str
    date: str
    new_date: str

    @property
    def shifted_days(self) -> int:
        """By how many days shifts of the schedule have moved it."""
        return (date.fromisoformat(self.date) - date.fromisoformat(self.program_date)).days

    @property
    def name(self) -> str:
        """The name that the program has for it now, or of what no longer changes its own."""
        own = self.copy if self.source is None or self.state in ("done", "past") else None
        return (own or cast("StoredBlock", self.source or self.copy))["name"]

    def is_from(self, first: str) -> bool:
        """Return whether it is on the date `first` or later, and would stay so."""
        return self.new_date >= first and (self.copy is None or str(self.copy["date"]) >= first)


def compare(
    program: ProgramNow, assignment: StoredAssignment, copies: Sequence[StoredBlock], today: str
) -> list[Comparison]:
    """Return the blocks of an assignment compared with the program, by date; `today` is the client's local date."""
    dates = date_blocks(program.blocks, assignment["startDate"], find_weekdays(program, assignment, copies))
    copy_of = _match(program, copies)
    matched = {copy["_id"] for copy in copy_of.values()}
    known, shifts = taken_over(program, assignment), assignment.get("shifts", ())
    compared: list[Comparison] = []
    for source in program.blocks:
        if (day := dates.get(source["_id"])) is not None:
            days = day, _shift(day, shifts), today
            compared.append(_compare_block(program, source, copy_of.get(source["_id"]), days, known))
        elif (copy := copy_of.get(source["_id"])) is not None:
            matched.discard(copy["_id"])  # it is a rest day now, which weekdays leave out
    compared += [_compare_removed(copy, today) for copy in copies if copy["_id"] not in matched]
    return sorted(compared, key=lambda each: each.date)


def _compare_block(
    program: ProgramNow,
    source: StoredBlock,
    copy: StoredBlock | None,
    days: tuple[str, str, str],
    known: Collection[ObjectId],
) -> Comparison:
    """Compare a block; `days` are the date that the program has for it, the same with shifts, and the client's."""
    plan = program.plans[source["_id"]]
    program_date, day, today = days
    if copy is None:
        state: SyncState = "past" if day < today else "customised" if source["_id"] in known else "new"
        return Comparison(state, source, copy, program_date, day, day)
    is_moved, current = find_program_date(copy) != program_date, summarize_plan(copy)
    new_date = day if is_moved else str(copy["date"])
    day = day if is_moved else str(copy.get("plannedDate") or copy["date"])
    if not has_nothing_done(copy):
        state = "done"
    elif str(copy["date"]) < today:
        state = "past"
    elif not is_moved and current == plan:
        state = "same"
    elif _is_customised(copy, current):
        state = "customised"
    else:
        state = "past" if new_date < today else "changed"
    return Comparison(state, source, copy, program_date, day, new_date)


def _compare_removed(copy: StoredBlock, today: str) -> Comparison:
    state: SyncState = "removed"
    if not has_nothing_done(copy):
        state = "done"
    elif str(copy["date"]) < today:
        state = "past"
    elif copy.get("programBlockId") is None or _is_customised(copy, summarize_plan(copy)):
        state = "customised"
    day = str(copy["date"])
    return Comparison(state, None, copy, day, day, day)


def _shift(day: str, shifts: Sequence[Shift]) -> str:
    """Return where the shifts of an assignment have moved a date of the program."""
    for shift in shifts:
        if day >= shift["first"]:
            day = shift_date(day, shift["days"], "startDate")
    return day


def _is_customised(copy: StoredBlock, plan: str) -> bool:
    """Return whether a copy was changed since it was made; `plan` is the summary of what is planned in it.

    Of a copy that is older than the summaries, this is certain only while it has never been changed.
    """
    summary = copy.get("programCopy")
    if summary is None:
        return copy["version"] > 0
    return summary != summarize_copy(copy, plan)


def taken_over(program: ProgramNow, assignment: StoredAssignment) -> set[ObjectId]:
    """Return the blocks of a program that an assignment has taken over.

    Of an assignment that is older than this list, those that the program had then.
    """
    if (ids := assignment.get("programBlockIds")) is not None:
        return set(ids)
    return {block["_id"] for block in program.blocks if block["createdAt"] <= assignment["createdAt"]}


def find_weekdays(program: ProgramNow, assignment: StoredAssignment, copies: Sequence[StoredBlock]) -> list[int] | None:
    """Return the weekdays that a program was assigned to; None for all days.

    For an assignment that is older than this field, those on which most of its blocks have the dates that they have.
    """
    if "weekdays" in assignment or not copies:
        return assignment.get("weekdays")
    start = assignment["startDate"]
    untouched = [copy for copy in copies if copy["version"] == 0] or copies
    used = sorted({date.fromisoformat(find_program_date(copy)).isoweekday() for copy in untouched})
    choices: list[list[int] | None] = [None, used]

    def count_right(weekdays: list[int] | None) -> int:
        dates = date_blocks(program.blocks, start, weekdays)
        by_day = {block["day"]: dates[block["_id"]] for block in program.blocks if block["_id"] in dates}
        return sum(by_day.get(copy["day"]) == find_program_date(copy) for copy in copies)

    return max(choices, key=count_right)


def _match(program: ProgramNow, copies: Sequence[StoredBlock]) -> dict[ObjectId, StoredBlock]:
    """Return the copy of each block of a program that has one, by identifier of the block.

    Copies that are older than their reference to the program's block belong to a block of the same day: with the same
    plan or, if it has as many blocks as copies, in order.
    """
    linked = {copy.get("programBlockId"): copy for copy in copies}
    matched = {block["_id"]: linked[block["_id"]] for block in program.blocks if block["_id"] in linked}
    older = [copy for copy in copies if copy.get("programBlockId") is None]
    if not older:
        return matched
    sources = _by_day(block for block in program.blocks if block["_id"] not in matched)
    for day, of_day in _by_day(older).items():
        left = sources.get(day, [])
        plans = Counter(program.plans[source["_id"]] for source in left)
        rest: list[StoredBlock] = []
        for copy in of_day:
            plan = summarize_plan(copy)
            if plans[plan] > 0:
                plans[plan] -= 1
                source = next(each for each in left if program.plans[each["_id"]] == plan)
                left.remove(source)
                matched[source["_id"]] = copy
            else:
                rest.append(copy)
        if len(rest) == len(left):
            matched |= {source["_id"]: copy for source, copy in zip(left, rest, strict=True)}
    return matched


def _by_day(blocks: Iterable[StoredBlock]) -> defaultdict[int | None, list[StoredBlock]]:
    by_day: defaultdict[int | None, list[StoredBlock]] = defaultdict(list)
    for block in blocks:
        by_day[block["day"]].append(block)
    return by_day
