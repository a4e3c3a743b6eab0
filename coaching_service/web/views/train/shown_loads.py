"""Loads in the unit that a client has chosen: personal records, and what was lifted in workouts."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.people.account.load_units import LOAD_UNITS, convert_stored_load
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.reports.models import LiftResult
from coaching_service.training.workouts.sets.records import unit_of


def show_records(ctx: Context, records: Sequence[PersonalRecord]) -> list[PersonalRecord]:
    """Return personal records, with loads in the client's unit."""
    return [_show_record(record, ctx.caller.load_unit) for record in records]


def _show_record(record: PersonalRecord, load_unit: str) -> PersonalRecord:
    if record["unit"] not in LOAD_UNITS or record["unit"] == load_unit:
        return record
    return {**record, "value": convert_stored_load(record["value"], record["unit"], load_unit), "unit": load_unit}


def show_results(ctx: Context, results: Sequence[LiftResult]) -> list[LiftResult]:
    """Return what was done of an exercise in workouts, with its loads in the client's unit."""
    unit, shown_unit = ctx.caller.company.load_unit, ctx.caller.load_unit
    if unit == shown_unit:
        return list(results)
    return [
        {
            **result,
            "volumeLoad": convert_stored_load(result["volumeLoad"], unit, shown_unit),
            "bests": [
                {**best, "value": convert_stored_load(best["value"], unit, shown_unit)}
                if unit_of(best["kind"]) is None
                else best
                for best in result["bests"]
            ],
        }
        for result in results
    ]
