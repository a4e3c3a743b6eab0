"""The schemas of programs and their blocks, with the checks that concern several fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.external_identity import IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of, query_of
from coaching_service.core.list_selection import RECORDS
from coaching_service.core.validation import DryRun, Input
from coaching_service.training.programs import models
from coaching_service.training.workouts.blocks.models import BlockItems


class _DaysInOrder(Input):
    @validates_schema
    def require_order(self, data: Mapping[str, int], **_: Any) -> None:
        """Require the end not to be before the start."""
        if data["endDay"] < data["startDay"]:
            raise ValidationError("must not be before startDay", "endDay")


ProgramQuery = query_of(models.ProgramQuery, RECORDS)
DayRange = query_of(models.ProgramDayRange, _DaysInOrder)
NewProgram = input_of(models.ProgramInput, IdentityFields, name="NewProgram")
Program = output_of(models.Program, IdentityResult)
ProgramBlockCopy = input_of(models.ProgramBlockCopy)
# The items come before the other fields, as in earlier API documents.
NewProgramBlock = input_of(models.NewProgramBlock, IdentityFields, input_of(BlockItems), DryRun)
