"""Fields that every stored document has."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias, TypedDict

from coaching_service.core.fields import Private
from coaching_service.core.ids import ObjectId

# Fields of a document of any collection: each feature declares the fields of its own documents.
DocumentFields: TypeAlias = dict[str, Any]
# The value of one field of a document of any collection.
FieldValue: TypeAlias = Any


class Returned(TypedDict):
    """What every returned document has: feature models add their own fields.

    `createdAt` and `updatedAt` are UTC without a time zone, to the millisecond; `version` starts at 0 and rises by one
    with each change.
    """

    _id: ObjectId
    createdAt: datetime
    updatedAt: datetime
    version: int


class Stored(Returned):
    """The base of every stored document."""

    companyId: Annotated[ObjectId, Private]
