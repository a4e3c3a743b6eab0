"""What companies have answered about names, in the database: one document for a company and name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import TEMPLATES, Portable
from coaching_service.core.ids import ObjectId
from coaching_service.library.imported_names.models import ImportedName

imported_names = Documents[ImportedName](
    "importedNames",
    (Index(("name",), unique=True),),
    no_history_reason="answers to questions of imports, which change no record",
    transfer=Portable(ImportedName, TEMPLATES, references={"exerciseId": "exercises"}),
)
_BY_NAME = imported_names.index_name("name")


async def find(ctx: Context, names: Collection[str]) -> dict[str, ObjectId | None]:
    """Return the stored answers about normalized names, by name: an exercise, or None for names that are left out."""
    stored = await imported_names.find(
        ctx, {"name": {"$in": list(names)}}, fields=("name", "exerciseId"), hint=_BY_NAME
    )
    return {each["name"]: each["exerciseId"] for each in stored}


async def save(ctx: Context, answers: Mapping[str, ObjectId | None]) -> None:
    """Store answers about normalized names."""
    if answers:
        documents = [{"name": name, "exerciseId": exercise_id} for name, exercise_id in answers.items()]
        await imported_names.upsert_many(ctx, ("name",), documents)
