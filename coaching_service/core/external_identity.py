"""What another system knows a record by: its identifier there, and texts that it keeps with the record.

`metadata` is stored as a list of entries, not as an object: a key that comes from outside is then never the name of a
stored field, so that it cannot be a query operator or a path.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, TypedDict

from marshmallow import ValidationError, fields, validate

from coaching_service.core.auth import require_permission
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.declared import Index
from coaching_service.core.errors import ExternalIdTaken
from coaching_service.core.fields import Description, input_of, output_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import NOT_AN_OBJECT, NULL, Message, Text

MAX_ENTRIES, KEY_LENGTH, VALUE_LENGTH = 20, 40, 500
_ATTEMPTS = 3
_PATTERN = r"^[\x21-\x7e]{1,200}$"

# Served only for queries with a text: records without an external identifier are not in it.
BY_EXTERNAL_ID = Index(("externalId",), unique=True, partial_filter=(("externalId", {"$gt": ""}),))


HAS_METADATA = "metadata.key"


class MetadataEntry(TypedDict):
    """A text that another system keeps with a record."""

    key: str
    value: str


class StoredIdentity(TypedDict, total=False):
    """The external identity as it is stored; absent in records that never had one."""

    externalId: str | None
    metadata: list[MetadataEntry]


class ExternalId(Text):
    """The identifier of a record in another system: 1 to 200 visible ASCII characters, not `.` or `..`.

    Clients remove these two from a path before they send it.
    """

    default_error_messages = {"dots": Message("must not be . or ..", "INVALID_EXTERNAL_ID")}
    _check = validate.Regexp(
        _PATTERN[:-1] + r"\Z", error=Message("must be 1 to 200 visible ASCII characters", "INVALID_EXTERNAL_ID")
    )

    def __init__(self, **options: Any) -> None:
        metadata = {"pattern": _PATTERN, "example": "crm-1042"} | options.pop("metadata", {})
        super().__init__(trim=False, metadata=metadata, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        self._check(value)
        if value in (".", ".."):
            raise self.make_error("dots")
        return value


class Metadata(fields.Dict):
    """An object of up to 20 texts: keys of at most 40 characters, values of at most 500."""

    default_error_messages = {
        "invalid": NOT_AN_OBJECT,
        "many": Message(f"must not hold more than {MAX_ENTRIES} entries", "TOO_MANY"),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(
            keys=Text(max_length=KEY_LENGTH, trim=False),
            values=Text(max_length=VALUE_LENGTH, allow_blank=True, trim=False, error_messages={"null": NULL}),
            metadata={"maxProperties": MAX_ENTRIES} | options.pop("metadata", {}),
            **options,
        )

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, Mapping) and len(value) > MAX_ENTRIES:
            raise self.make_error("many")
        try:
            loaded: dict[str, str] = super()._deserialize(value, attr, data, **kwargs)  # type: ignore[no-untyped-call]  # marshmallow
        except ValidationError as error:
            if not isinstance(error.messages, dict):
                raise
            # marshmallow separates the errors of a key from the errors of its value.
            texts = {key: [text for each in kinds.values() for text in each] for key, kinds in error.messages.items()}
            raise ValidationError(texts) from None
        return loaded


class IdentityInput(TypedDict, total=False):
    """The external identity in a request; None removes it."""

    externalId: Annotated[str | None, ExternalId()]
    metadata: Annotated[
        dict[str, str] | None,
        Metadata(),
        Description(
            request="Texts that another system keeps with the record: up to 20, keys of at most 40 characters, values "
            "of at most 500. They are replaced as a whole; null removes them."
        ),
    ]


IdentityFields = input_of(IdentityInput)


class MetadataFilter(Metadata):
    """Texts that the metadata of records have: `metadata[KEY]=VALUE`, which may be repeated with other keys.

    A key with brackets cannot be searched for.
    """

    _name = re.compile(r"metadata\[([^\[\]]+)\]")

    def __init__(self) -> None:
        description = "Only what has these texts in its `metadata`: `metadata[KEY]=VALUE`, for each key."
        super().__init__(metadata={"description": description, "example": {"plan": "gold"}})

    @classmethod
    def key_of(cls, name: str) -> str | None:
        """Return the key in the name of a query parameter; None if the name is malformed."""
        match = cls._name.fullmatch(name)
        return None if match is None else match[1]

    @classmethod
    def condition(cls, sent: Mapping[str, str]) -> dict[str, Any]:
        """Return the filter of the records with these texts: values only, whatever they contain."""
        entries = [{"$elemMatch": {"key": {"$eq": key}, "value": {"$eq": value}}} for key, value in sent.items()]
        return {"metadata": {"$all": entries}, HAS_METADATA: {"$exists": True}} if entries else {}


class ExternalIdFilter(TypedDict):
    """The filters of a list by what another system knows a record by."""

    externalId: NotRequired[Annotated[str, ExternalId()]]
    metadata: NotRequired[Annotated[dict[str, str], MetadataFilter()]]


class Identity(TypedDict):
    """The external identity as interfaces return it."""

    externalId: str | None
    metadata: Annotated[
        dict[str, str],
        fields.Dict(keys=fields.String(), values=fields.String()),
        Description("Texts that another system keeps with the record; empty without any."),
    ]


IdentityResult = output_of(Identity)

# The checks of an import, by path.
IDENTITY_CHECKS: dict[str, fields.Field[Any]] = {
    "externalId": ExternalId(),
    "metadata.key": Text(max_length=KEY_LENGTH, trim=False),
    "metadata.value": Text(max_length=VALUE_LENGTH, allow_blank=True, trim=False),
}


def stored_identity(sent: Mapping[str, Any]) -> StoredIdentity:
    """Return the fields of an external identity that were sent, as they are stored."""
    stored: StoredIdentity = {}
    if "externalId" in sent:
        stored["externalId"] = sent["externalId"]
    if "metadata" in sent:
        stored["metadata"] = [{"key": key, "value": value} for key, value in (sent["metadata"] or {}).items()]
    return stored


def stored_fields(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return all fields that were sent, with an external identity as it is stored."""
    return {**sent, **stored_identity(sent)}


def find_differences(stored: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `fields`, by path (`a.b`), with other values than the stored record has.

    The order of metadata is not a difference, nor is null for a field that the record does not have.
    """
    differences = {}
    for path, value in fields.items():
        current: Any = stored
        for name in path.split("."):
            current = (current or {}).get(name)
        if path == "metadata":
            is_stored = present_identity(stored)["metadata"] == present_identity({path: value})["metadata"]
        else:
            is_stored = current == value
        if not is_stored:
            differences[path] = value
    return differences


def present_identity(stored: Mapping[str, Any]) -> Identity:
    """Return the external identity of a stored record as interfaces return it."""
    entries: Sequence[MetadataEntry] = stored.get("metadata") or ()
    metadata = {entry["key"]: entry["value"] for entry in entries} if entries else {}  # most records have none
    return {"externalId": stored.get("externalId"), "metadata": metadata}


@dataclass(frozen=True)
class Upserted:
    """A record that was sent by its external identifier, as interfaces return it, and whether it is new."""

    record: Mapping[str, Any]
    created: bool


async def upsert(
    ctx: Context,
    find: Callable[[Context], Awaitable[ObjectId | None]],
    change: Callable[[Context, ObjectId], Awaitable[Mapping[str, Any]]],
    create: Callable[[Context], Awaitable[Mapping[str, Any]]],
    permissions: tuple[str, str],
) -> Upserted:
    """Call `change` with the record that `find` returns, or `create` if there is none, in one transaction.

    If another request creates the record first, the next attempt finds it. `permissions`: what creating needs,
    and what changing needs. Raises Forbidden without it, ExternalIdTaken if `find` does not return the record that has
    the identifier, and what the functions raise.
    """
    to_create, to_change = permissions

    async def work(tx: Context) -> Upserted:
        if (identifier := await find(tx)) is not None:
            require_permission(tx.caller, to_change)
            return Upserted(await change(tx, identifier), created=False)
        require_permission(tx.caller, to_create)
        return Upserted(await create(tx), created=True)

    for _ in range(_ATTEMPTS - 1):
        with suppress(ExternalIdTaken):
            return await in_transaction(ctx, work)
    return await in_transaction(ctx, work)
