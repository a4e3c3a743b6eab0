"""What one transaction changes, collected while it runs: the content of the change log.

`Documents` reports each write to a collection that declares its `History`; services report typed events. When the
transaction is about to commit, the change log stores what was collected (see `core/changes`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

import bson

from coaching_service.core.auth import Principal, Via
from coaching_service.core.database import field_changes as database_field_changes
from coaching_service.core.dates import zone_of
from coaching_service.core.events import EventType, EventValue
from coaching_service.core.fields import Description, Optional
from coaching_service.core.ids import ObjectId

if TYPE_CHECKING:
    from coaching_service.core.database.collections import ReadableCollection
    from coaching_service.core.database.context import Context

Action = Literal["created", "changed", "deleted"]
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


_ACTOR_TYPES: dict[Interface, ActorType] = {
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
    actor: Actor = {
        "type": _ACTOR_TYPES[interface],
        "_id": ctx.principal.id,
        "name": ctx.principal.name,
    }
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


class EventData(TypedDict):
    """An event derived from a change of a document.

    `fields` of an `.updated` event are the names of what changed, by default the document's changed fields.
    """

    type: EventType
    data: Mapping[str, EventValue]
    fields: NotRequired[list[str]]


# Returns the event for an action on a document, given its `event_fields` by path and the paths that were written;
# None if the action is not an event.
EventOf = Callable[[Action, Mapping[str, Any], Collection[str]], EventData | None]


@dataclass(frozen=True)
class History:
    """How the change log records a collection.

    `kind` is the public name of its documents. `event` derives the event of a change from the fields in
    `event_fields`, which are read with each change. `undo`: "restore" puts previous values back, and fails if the
    document has changed since; "derived" does the same but skips a document that has changed since, as it is computed
    again from others; "never" for documents that refer to files or people outside the service; "changes" for documents
    whose creation and deletion cannot be undone; "creation" if only the creation of a document can be undone.
    `omit`: fields that are not recorded, such as hashes.
    `public_names`: the public fields that private or omitted ones are returned as, by the name of the stored one.
    `kind_of` derives another kind of some documents from the fields in `event_fields`.
    `contact` yields what of a document reaches people, or is worded as if a person wrote to them: an assistant has to
    have it confirmed. `check` is called with what a transaction has changed before it ends, and raises for what must
    not be stored.
    """

    kind: str
    event: EventOf | None = None
    event_fields: tuple[str, ...] = ()
    undo: Literal["restore", "derived", "changes", "creation", "never"] = "restore"
    omit: tuple[str, ...] = ()
    public_names: Mapping[str, str] = field(default_factory=dict)
    kind_of: Callable[[Mapping[str, Any]], str] | None = None
    contact: Callable[[Mapping[str, Any]], Iterable[Hashable]] | None = None
    check: Callable[[Context, Sequence[DocumentChange]], Awaitable[None]] | None = None

    def can_undo(self, action: Action) -> bool:
        """Return whether an action on one of the documents can be undone."""
        only = {"changes": "changed", "creation": "created", "never": None}.get(self.undo, action)
        return action == only

    def without_omitted(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a document that are recorded."""
        return {name: value for name, value in document.items() if name not in self.omit}


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
    known: database_field_changes.DocumentFields = field(default_factory=dict)
    before: database_field_changes.DocumentFields | None = None
    after: database_field_changes.DocumentFields | None = None
    values: dict[str, tuple[database_field_changes.FieldValue, database_field_changes.FieldValue]] = field(
        default_factory=dict
    )
    added: dict[str, tuple[list[ObjectId], list[dict[str, Any]]]] = field(default_factory=dict)
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
            paths += [*self.added, *self.omitted]
        names = self.history.public_names
        hidden = {*private, *self.history.omit, *database_field_changes.METADATA} - names.keys()
        return sorted({names.get(path, path) for path in paths if path.partition(".")[0] not in hidden})

    def field_changes(self) -> list[database_field_changes.FieldChange]:
        """Return the fields that differ, in the order they were written."""
        changes = [
            database_field_changes.field_change(path, before, after) for path, (before, after) in self.values.items()
        ]
        for path, (order, elements) in self.added.items():
            changes.append({"path": path, "elements": True, "before": [], "after": elements, "order": order})
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

    def add_created(self, collection: ReadableCollection[Any], documents: Iterable[Mapping[str, Any]]) -> None:
        """Record new documents."""
        if (history := collection.history) is not None:
            for document in documents:
                versions = (document["version"], document["version"])
                change = self._new(collection, history, "created", document, versions)
                change.after = history.without_omitted(document)

    def add_deleted(self, collection: ReadableCollection[Any], documents: Iterable[Mapping[str, Any]]) -> None:
        """Record the deletion of documents, which have all their fields."""
        if (history := collection.history) is not None:
            for document in documents:
                earlier = self.documents.pop((collection.name, document["_id"]), None)
                if earlier is not None and earlier.action == "created":
                    continue
                before = dict(document)
                if earlier is not None:
                    for path, (value, _) in earlier.values.items():
                        database_field_changes.set_path(before, path, value)
                    before["version"] = earlier.from_version
                versions = (before["version"], document["version"])
                change = self._new(collection, history, "deleted", document, versions)
                change.before = history.without_omitted(before)

    def add_upserted(
        self,
        collection: ReadableCollection[Any],
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
        collection: ReadableCollection[Any],
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        paths: Sequence[str],
    ) -> None:
        """Record the fields of a document at `paths`, which were written, before and after."""
        if (history := collection.history) is None:
            return
        known = {**before, **after}
        change = self._changed(collection, history, known, (before["version"], after["version"]))
        change.omitted.update(path for path in paths if path in history.omit)
        recorded = [path for path in paths if path not in history.omit]
        earlier, later = (
            database_field_changes.values_at(before, recorded),
            database_field_changes.values_at(after, recorded),
        )
        for path in recorded:
            value = earlier[path]
            if path in change.added:
                order, _ = change.added.pop(path)
                by_id = {element["_id"]: element for element in value}
                value = [by_id[identifier] for identifier in order]
            if change.after is not None:
                database_field_changes.set_path(change.after, path, later[path])
            else:
                change.values[path] = (change.values[path][0] if path in change.values else value, later[path])

    def add_element(
        self, collection: ReadableCollection[Any], known: Mapping[str, Any], path: str, element: dict[str, Any]
    ) -> None:
        """Record that `element` was appended to the list at `path`.

        `known` has fields of the document afterwards, and of the elements of the list at least the identifiers: the
        change knows the others as they are there.
        """
        if (history := collection.history) is None:
            return
        change = self._changed(collection, history, known, (known["version"] - 1, known["version"]))
        if change.after is not None:
            database_field_changes.set_path(change.after, path, [*change.after.get(path, []), element])
        elif path in change.values:
            before, after = change.values[path]
            change.values[path] = (before, [*after, element])
        else:
            change.known.setdefault(path, known[path][:-1])
            order = [each["_id"] for each in known[path][:-1]]
            change.added.setdefault(path, (order, []))[1].append(element)

    def _changed(
        self,
        collection: ReadableCollection[Any],
        history: History,
        known: Mapping[str, Any],
        versions: tuple[int, int],
    ) -> DocumentChange:
        change = self.documents.get((collection.name, known["_id"]))
        if change is None:
            return self._new(collection, history, "changed", known, versions)
        change.known |= database_field_changes.values_at(known, history.event_fields)
        change.to_version = versions[1]
        return change

    def _new(
        self,
        collection: ReadableCollection[Any],
        history: History,
        action: Action,
        known: Mapping[str, Any],
        versions: tuple[int, int],
    ) -> DocumentChange:
        client_id = known.get(collection.client_field) if collection.client_field else None
        change = DocumentChange(collection.name, history, known["_id"], client_id, action, *versions)
        change.known = database_field_changes.values_at(known, history.event_fields)
        self.documents[collection.name, known["_id"]] = change
        return change


def encoded_size(document: Mapping[str, Any]) -> int:
    """Return the size of a document in the database, in bytes."""
    return len(bson.encode(document))
