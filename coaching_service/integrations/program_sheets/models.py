"""What an import of a program is asked for and returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypedDict

from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Default, Description
from coaching_service.core.query import FormBoolean, FormObject
from coaching_service.core.validation import Text
from coaching_service.integrations.history_files.models import Problem, Question
from coaching_service.library.imported_names.models import NameInFile
from coaching_service.people.account.service import LoadUnit
from coaching_service.training.programs import schemas as programs
from coaching_service.training.programs.models import Program


class ProgramImportOptions(TypedDict):
    """How a sheet becomes a program."""

    name: Annotated[str | None, Text(), Description("The name of the program. Default: the name of the file.")]
    names: Annotated[
        Mapping[str, str],
        FormObject(),
        Default(dict),
        Description(
            "A JSON object: for a name of an exercise in the file, the identifier of an exercise, `create` (a new "
            "exercise) or `skip`. Names without an answer mean what the response to a dry run says."
        ),
    ]
    loadUnit: Annotated[
        LoadUnit | None, Description("The unit of loads for which the sheet has none. Default: the company's.")
    ]


class ProgramImportFields(ProgramImportOptions):
    """How to import a program."""

    dryRun: Annotated[
        bool,
        FormBoolean(),
        Default(False),
        Description("`true`: return the program and the names, and store nothing."),
    ]


class ImportedProgram(Program):
    """A program that was made of a sheet, or with `dryRun` would be."""

    questions: Annotated[list[Question], Description("What the file does not decide; empty if nothing is open.")]
    names: Annotated[
        list[NameInFile], Description("The names of exercises in the file and what they mean, the most frequent first.")
    ]
    errors: Annotated[
        list[Problem],
        Description(
            "Cells that could not be read, by line, what they have is in the instructions of the exercise; columns "
            "(`UNKNOWN_COLUMN`) and sheets that are not read."
        ),
    ]


IMPORTED_PROGRAM = output_of(ImportedProgram, programs.Program)
