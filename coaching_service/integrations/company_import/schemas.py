"""The text fields sent with a file to import."""

from __future__ import annotations

from coaching_service.core.validation import Choice, FormBoolean, Input


class ImportFields(Input):
    """How to import a file."""

    dryRun = FormBoolean(
        load_default=False,
        metadata={"description": "`true`: check everything, report the problems, and store nothing. Default: `false`."},
    )
    onConflict = Choice(
        "error",
        "update",
        load_default="error",
        metadata={
            "description": "What becomes of a row of a CSV file whose external identifier a client has: it is left out "
            "with an error, or the client gets what its cells have; empty cells change nothing. Default: `error`."
        },
    )
