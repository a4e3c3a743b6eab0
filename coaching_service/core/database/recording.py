"""What one transaction changes, collected while it runs: the content of the change log.

`Documents` reports each write to a collection that declares its `History`; services report typed events. When the
transaction is about to commit, the change log stores what was collected (see `core/changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

import bson

from coaching_service.core.auth import Principal, Via
from coaching_service.core.database.declared import Action, DocumentFields, FieldValue, History
from coaching_service.core.dates import zone_of
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.fields import Description, Optional
from coaching_service.core.ids import ObjectId

if TYPE_CHECKING:
    from coaching_service.core.database.context import Context
    from coaching_service.core.database.documents import Documents

Interface = Literal["session", "apiKey", "assistant", "application", "client", "system"]


# A coach acts through a session, an assistant, an application or an API key (`key`).
ActorType = Literal["coach", "client", "assistant", "application", "key", "system"]


class Author(TypedDict):
    """Who acted, and in which role."""

    type: Annotated[ActorType, Description("In which role: `system` for background work.")]
    _id: Annotated[ObjectId | None, Description("The coach or client; null for `system`.")]


class Actor(Author):
    """The author of a change."""

    name: Annotated[str, Description("Their name.")]
    applicationId: NotRequired[Annotated[ObjectId, Optional, Description("The application's access, if it acted.")]]


ACTOR_TYPES: dict[Interface, ActorType] = {
    "session": "coach",
    "apiKey": "key",
    "assistant": "assistant",
    "application": "application",
    "client": "client",
    "system": "system",
}
_COACH_INTERFACES: dict[Via, Interface] = {
    "session": "session",
    "apiKey": "apiKey",
    "mcp": "assistant",
    "application": "application",
}


def interface_of(ctx: Context) -> Interface:
    """Return the interface that the caller uses."""
    if ctx.interface is not None:
        return ctx.interface
    if ctx.principal is None:
        return "system"
    if not ctx.principal.is_coach:
        return "client"
    return _COACH_INTERFACES[ctx.principal.via]


def actor_of(ctx: Context) -> Actor:
    """Return the author of what the caller does."""
    interface = interface_of(ctx)
    if ctx.principal is None or interface == "system":
        return {"type": "system", "_id": None, "name": "System"}
    actor: Actor = {"type": ACTOR_TYPES[interface], "_id": ctx.principal.id, "name": ctx.principal.name}
    return {**actor, "applicationId": ctx.principal.credential_id} if interface == "application" else actor


class DayOfActor(TypedDict):
    """A day, and who acted on it, with which key, grant or session."""

    date: str
    actor: Actor
    credentialId: ObjectId | None


class CountedByDay(TypedDict):
    """How often someone acted on a day."""

    _id: DayOfActor
    count: int


def by_day(timezone: str, counted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the stages that count documents with `createdAt` and `actor` by day in a time zone, and by actor."""
    day = {"$dateToString": {"date": "$createdAt", "format": "%Y-%m-%d", "timezone": zone_of(timezone).key}}
    key = {"date": day, "actor": "$actor", "credentialId": {"$ifNull": ["$credentialId", None]}}
    return [{"$group": {"_id": key, "count": counted}}]


class Approver(TypedDict):
    """The coach who approved what an assistant proposed."""

    _id: ObjectId
    name: str


# Where a coach has decided: on a page, over REST, in the view of an application, or in the chat with the assistant.
DecidedIn = Literal["page", "api", "view", "chat"]


@dataclass
class DocumentChange:
    """A document that the transaction created, changed or deleted, from its first to its last write.

    `known` holds fields that events and the client are derived from. `before` is the complete deleted document,
    `after` the complete created one; a changed document has `values`: by path, the value before and after.
    `omitted` are the written paths whose values are not recorded.
    """

    collection: str
    history: History
    id: ObjectId
    client_id: ObjectId | None
    action: Action
    from_version: int
    to_version: int
    known: DocumentFields = field(default_factory=dict)
    before: DocumentFields | None = None
    after: DocumentFields | None = None
    values: dict[str, tuple[FieldValue, FieldValue]] = field(default_factory=dict)
    omitted: set[str] = field(default_factory=set)

    @property
    def kind(self) -> str:
        """The public name of its kind."""
        return self.history.kind if self.history.kind_of is None else self.history.kind_of(self.known)

    def changed_names(self, private: Collection[str]) -> list[str]:
        """Return the public names of the fields that differ, in alphabetical order; dotted inside nested documents."""
        if self.action != "changed":
            paths = [path for path, value in (self.after or self.before or {}).items() if value not in (None, [])]
        else:
            paths = [path for path, (before, after) in self.values.items() if before != after]
            paths += self.omitted
        names = self.history.public_names
        hidden = {*private, *self.history.omit, *METADATA} - names.keys()
        return sorted({names.get(path, path) for path in paths if path.partition(".")[0] not in hidden})

    def field_changes(self) -> list[FieldChange]:
        """Return the fields that differ, in the order they were written."""
        changes = (field_change(path, before, after) for path, (before, after) in self.values.items())
        return [change for change in changes if change is not None]


@dataclass(frozen=True)
class FeedEntry:
    """An entry of a client's activity feed: `data` may hold names, which events do not.

    It replaces the entry of the same event type about the same `source_id`. With a `date` of its own (UTC) it is an
    imported entry, of `actor` if given, and is not an event. `is_first`: there is no other entry to replace.
    """

    source_id: ObjectId
    data: Mapping[str, object]
    date: datetime | None = None
    actor: Actor | None = None
    is_first: bool = False


@dataclass(frozen=True)
class LoggedEvent:
    """A typed event that a service reports.

    It takes the place of the event that would be derived from a change of the document `document_id`, and of one of the
    same type that would be derived from its creation. `source` is stored with it, but no part of the event: where what
    it is about came from, for the summary of its change.
    """

    type: EventType
    customer_id: ObjectId | None
    data: Mapping[str, EventValue]
    document_id: ObjectId | None = None
    feed: FeedEntry | None = None
    source: str | None = None


@dataclass(frozen=True)
class RemovedFeedEntries:
    """Entries of a client's feed that are no longer true: of these event types about this source document."""

    customer_id: ObjectId
    source_id: ObjectId
    types: tuple[EventType, ...]


@dataclass(frozen=True)
class Undo:
    """A change `id` that undoes the change `of`."""

    id: ObjectId
    of: ObjectId


@dataclass
class ChangeRecorder:
    """Collects the changes of one attempt at a transaction.

    `id` identifies the change in the log. `author` acts in a transaction that began without a caller.
    `can_be_undone` unless a service prevents it. An undo sets `undoes`, at most one of the changes of each client, by
    client, and `restored`, the earlier version that it restores, by document. `locked`: the documents that the
    transaction has written to only so that others conflict with it, with the fields that the lock has read.
    `approved_by`: the coach who approved the change of an assistant, and `decided_in` where; `confirms_itself` if the
    program may have confirmed it without a person. `sends`: mail or a notification to a client is queued.
    `restores`: what it stores was exported before, and is stored whole, without the checks of its collections.
    `changes_cached`: documents that processes cache are changed or deleted. `after_commit`: called once the transaction
    is committed, for what processes count in memory.
    """

    id: ObjectId = field(default_factory=ObjectId)
    documents: dict[tuple[str, ObjectId], DocumentChange] = field(default_factory=dict)
    events: list[LoggedEvent] = field(default_factory=list)
    removed_entries: list[RemovedFeedEntries] = field(default_factory=list)
    restored: dict[ObjectId, int] = field(default_factory=dict)
    locked: dict[ObjectId, Mapping[str, Any]] = field(default_factory=dict)
    undoes: dict[ObjectId | None, Undo] = field(default_factory=dict)
    can_be_undone: bool = True
    changes_cached: bool = False
    after_commit: list[Callable[[], None]] = field(default_factory=list)
    author: Principal | None = None
    approved_by: Approver | None = None
    decided_in: DecidedIn | None = None
    confirms_itself: bool = False
    sends: bool = False
    restores: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written that the log records."""
        return not (self.documents or self.events or self.removed_entries)

    async def check(self, ctx: Context) -> None:
        """Raise what the checks of the changed collections raise."""
        if ctx.principal is None and self.author is not None:
            ctx = ctx.acting_as(self.author)
        for check in {change.history.check for change in self.documents.values()}:
            if check is not None and not self.restores:
                await check(ctx, [change for change in self.documents.values() if change.history.check is check])

    def prevent_undo(self) -> None:
        """Make the change one that cannot be undone."""
        self.can_be_undone = False

    def set_feed_dates(self, dates: Mapping[ObjectId, datetime]) -> None:
        """Give recorded feed entries dates of their own, by source document."""
        self.events = [
            replace(event, feed=replace(event.feed, date=dates[event.feed.source_id]))
            if event.feed is not None and event.feed.source_id in dates
            else event
            for event in self.events
        ]

    def add_created(self, collection: Documents[Any], documents: Iterable[Mapping[str, Any]]) -> None:
        """Record new documents."""
        if (history := collection.history) is not None:
            for document in documents:
                versions = (document["version"], document["version"])
                change = self._new(collection, history, "created", document, versions)
                change.after = history.without_omitted(document)

    def add_deleted(self, collection: Documents[Any], documents: Iterable[Mapping[str, Any]]) -> None:
        """Record the deletion of documents, which have all their fields."""
        if (history := collection.history) is not None:
            for document in documents:
                earlier = self.documents.pop((collection.name, document["_id"]), None)
                if earlier is not None and earlier.action == "created":
                    continue
                before = dict(document)
                if earlier is not None:
                    for path, (value, _) in earlier.values.items():
                        set_path(before, path, value)
                    before["version"] = earlier.from_version
                versions = (before["version"], document["version"])
                change = self._new(collection, history, "deleted", document, versions)
                change.before = history.without_omitted(before)

    def add_upserted(
        self,
        collection: Documents[Any],
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any],
        paths: Sequence[str],
    ) -> None:
        """Record a document that was created if there was none (`before` is None), else the change of `paths`."""
        if before is None:
            self.add_created(collection, [after])
        else:
            self.add_changed(collection, before, after, paths)

    def add_changed(
        self,
        collection: Documents[Any],
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        paths: Sequence[str],
    ) -> None:
        """Record the fields of a document at `paths`, which were written, before and after."""
        if (history := collection.history) is None:
            return
        known = {**before, **after}
        change = self.documents.get((collection.name, known["_id"]))
        if change is None:
            change = self._new(collection, history, "changed", known, (before["version"], after["version"]))
        else:
            change.known |= values_at(known, history.event_fields)
            change.to_version = after["version"]
        change.omitted.update(path for path in paths if path in history.omit)
        recorded = [path for path in paths if path not in history.omit]
        earlier, later = values_at(before, recorded), values_at(after, recorded)
        for path in recorded:
            if change.after is not None:
                set_path(change.after, path, later[path])
            else:
                first = change.values[path][0] if path in change.values else earlier[path]
                change.values[path] = (first, later[path])

    def _new(
        self,
        collection: Documents[Any],
        history: History,
        action: Action,
        known: Mapping[str, Any],
        versions: tuple[int, int],
    ) -> DocumentChange:
        client_id = known.get(collection.client_field) if collection.client_field else None
        change = DocumentChange(collection.name, history, known["_id"], client_id, action, *versions)
        change.known = values_at(known, history.event_fields)
        self.documents[collection.name, known["_id"]] = change
        return change


# --- What differs between two versions of a document, field by field, and how it is put back --------------------------


METADATA = frozenset({"_id", "companyId", "createdAt", "updatedAt", "version"})
MISSING: Any = object()  # the value of a field that is not set


class FieldChange(TypedDict, total=False):
    """One field of a document before and after; a side without a value was not set.

    `path` is the field's name, dotted inside nested documents. A field that holds a list of documents with `_id` has
    only those that differ (`elements`), and `order`, the identifiers before, if they were added, removed or moved.
    """

    path: str
    before: FieldValue
    after: FieldValue
    elements: bool
    order: list[ObjectId]


def without_nested(names: Sequence[str]) -> list[str]:
    """Return the names without those inside another one, which MongoDB does not accept in one projection."""
    unique = list(dict.fromkeys(names))
    return [name for name in unique if not any(name.startswith(f"{other}.") for other in unique)]


def touched_paths(change: Mapping[str, Any]) -> list[str]:
    """Return the paths that update operators write, without metadata."""
    paths = [path for operator in change.values() for path in operator]
    return [path for path in dict.fromkeys(paths) if path not in METADATA]


def values_at(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return the values of a document at `paths`; MISSING where it has none."""
    found: dict[str, Any] = {}
    for path in paths:
        value: Any = document
        for name in path.split("."):
            value = value.get(name, MISSING) if isinstance(value, Mapping) else MISSING
        found[path] = value
    return found


def set_path(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value of a document at `path`, or remove it if the value is MISSING. Nested documents are copied."""
    *parents, name = path.split(".")
    for parent in parents:
        document[parent] = dict(document.get(parent, {}))
        document = document[parent]
    if value is MISSING:
        document.pop(name, None)
    else:
        document[name] = value


def field_change(path: str, before: Any, after: Any) -> FieldChange | None:
    """Return how a field has changed, or None if it has not."""
    if before is after or before == after:
        return None
    change: FieldChange = {"path": path}
    if _has_identifiers(before) and _has_identifiers(after):
        earlier = {element["_id"]: element for element in before}
        later = {element["_id"]: element for element in after}
        change["elements"] = True
        change["before"] = [element for element in before if _differs(element, later.get(element["_id"]))]
        change["after"] = [element for element in after if _differs(element, earlier.get(element["_id"]))]
        return change | {"order": list(earlier)} if list(earlier) != list(later) else change
    if before is not MISSING:
        change["before"] = before
    if after is not MISSING:
        change["after"] = after
    return change


def _has_identifiers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, Mapping) and "_id" in each for each in value)


def _differs(element: Any, other: Any) -> bool:
    """Return whether two elements differ; most are the same object, which is not compared field by field."""
    return element is not other and element != other


def restored_elements(current: Sequence[Any], change: FieldChange) -> list[Any]:
    """Return the list of elements as it was before `change`, from the list as it was after it."""
    elements = {element["_id"]: element for element in current}
    elements |= {element["_id"]: element for element in change["before"]}
    return [elements[identifier] for identifier in change.get("order", [each["_id"] for each in current])]


def encoded_size(document: Mapping[str, Any]) -> int:
    """Return the size of a document in the database, in bytes."""
    return len(bson.encode(document))
