"""Answers about a file as a job keeps them: names of the file are no keys of stored documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from coaching_service.core.auth import new_token
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_files.models import Format
from coaching_service.integrations.history_files.set_rows import Answers
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import models as history_import_models
from coaching_service.library.imported_names import NameAnswer


def new_work(
    answers: history_import_models.ImportAnswers, *, file_name: str, content_type: str, dry_run: bool
) -> history_import_models.ImportWork:
    """Return what the first step of an import needs, without a file; identifiers of the file get a new seed."""
    return {
        "fileId": None,
        "fileName": file_name,
        "contentType": content_type,
        "isDryRun": dry_run,
        "seed": new_token(),
        "entry": 0,
        "record": 0,
        "isStarted": False,
        "imported": {},
        "failed": 0,
        "answers": to_stored(answers),
    }


def to_stored(answers: history_import_models.ImportAnswers) -> history_import_models.StoredAnswers:
    """Return answers as a job keeps them."""
    return {
        **take(history_import_models.FileAnswers, answers),
        "names": list_answers(answers["names"]),
        "customers": list_answers(answers["customers"]),
        "columns": [{"heading": heading, "field": field} for heading, field in answers["columns"].items()],
    }


def list_answers(answers: Mapping[str, NameAnswer | None]) -> list[history_import_models.StoredAnswer]:
    """Return what names stand for as a list."""
    return [{"name": name, "answer": answer} for name, answer in answers.items()]


def by_name(answers: list[history_import_models.StoredAnswer]) -> dict[str, NameAnswer]:
    """Return what names stand for, without those that are left out."""
    return {each["name"]: each["answer"] for each in answers if each["answer"] is not None}


def exercise_ids(answers: list[history_import_models.StoredAnswer]) -> dict[str, ObjectId | None]:
    """Return the exercise of each name; None: what has it is left out, or the exercise would be created."""
    return {each["name"]: each["answer"] if isinstance(each["answer"], ObjectId) else None for each in answers}


def reading_answers(
    answers: history_import_models.StoredAnswers,
    date_order: DateOrder | None = None,
    decimal_sign: DecimalSign | None = None,
) -> Answers:
    """Return what the reading of the file needs; `date_order` and `decimal_sign` are what the file has decided."""
    form = answers["format"]
    return Answers(
        format=cast("Format", form) if form in get_args(Format) else None,
        load_unit=answers["loadUnit"],
        distance_unit=answers["distanceUnit"],
        duration_unit=answers.get("durationUnit"),  # absent in jobs of older versions
        date_order=answers["dateOrder"] or date_order,
        decimal_sign=answers.get("decimalSign") or decimal_sign,
        columns={each["heading"]: cast("Any", each["field"]) for each in answers["columns"]},
    )
