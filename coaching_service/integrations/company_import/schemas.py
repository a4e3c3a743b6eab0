"""The text fields sent with a file to import."""

from __future__ import annotations

from coaching_service.core.validation import FormBoolean, Input


class ImportFields(Input):
    """How to import a file."""

    dryRun = FormBoolean(
        load_default=False,
        metadata={"description": "`true`: check everything, report the problems, and store nothing. Default: `false`."},
    )
