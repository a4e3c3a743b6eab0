"""What an import of a program is asked for and returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from coaching_service.core.fields import Description
from coaching_service.integrations.history_files.models import Problem, Question
from coaching_service.library.imported_names.models import NameInFile
from coaching_service.people.account.models import LoadUnit
from coaching_service.training.programs.models import Program


class ProgramImportOptions(TypedDict):
    """How a sheet becomes a program. Without a name it has the name of the file, without a unit the company's.

    `names`: what becomes of names of exercises, as a request sends it.
    """

    name: str | None
    names: Mapping[str, str]
    loadUnit: LoadUnit | None


class ImportedProgram(Program):
    """A program that was made of a sheet, or with `dryRun` would be."""

    questions: Annotated[list[Question], Description("What the file does not decide; empty if nothing is open.")]
    names: Annotated[
        list[NameInFile], Description("The names of exercises in the file and what they mean, the most frequent first.")
    ]
    errors: Annotated[
        list[Problem],
        Description("Cells that could not be read, by line. What they have is in the instructions of the exercise."),
    ]
