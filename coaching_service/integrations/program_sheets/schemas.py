"""The text fields sent with a sheet, and the program that it becomes."""

from __future__ import annotations

from coaching_service.core.field_schemas import output_of
from coaching_service.core.form_fields import FormBoolean, FormObject
from coaching_service.core.validation import Choice, Input, Text
from coaching_service.integrations.program_sheets import models
from coaching_service.training.programs.schemas import Program

IMPORTED_PROGRAM = output_of(models.ImportedProgram, Program, name="ImportedProgram")


class ProgramImportFields(Input):
    """How to import a program."""

    name = Text(load_default=None, metadata={"description": "The name of the program. Default: the name of the file."})
    names = FormObject(
        load_default=dict,
        metadata={
            "description": "A JSON object: for a name of an exercise in the file, the identifier of an exercise, "
            "`create` (a new exercise) or `skip`. Names without an answer mean what the response to a dry run says."
        },
    )
    loadUnit = Choice(
        "kg",
        "lb",
        load_default=None,
        metadata={"description": "The unit of loads for which the sheet has none. Default: the company's."},
    )
    dryRun = FormBoolean(
        load_default=False, metadata={"description": "`true`: return the program and the names, and store nothing."}
    )
