"""What companies have answered about names, in the database: one document for a company and name."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import TEMPLATES, Portable
from coaching_service.library.imported_names.models import ImportedName

imported_names = Documents[ImportedName](
    "importedNames",
    (Index(("name",), unique=True),),
    no_history_reason="answers to questions of imports, which change no record",
    transfer=Portable(ImportedName, TEMPLATES, references={"exerciseId": "exercises"}),
)
BY_NAME = imported_names.index_name("name")
