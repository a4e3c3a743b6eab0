"""Finding texts of clients by their words: each searched document has an entry with the words of each of its texts.

Collections declare which of their texts are found (`Searched`). The entries are written in the transaction of each
change, from what the change log has recorded; what is shown is read from the documents themselves.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, Services, gather_reads
from coaching_service.core.database.documents import Document, Documents, Filter, now, registry
from coaching_service.core.database.recording import DocumentChange, set_path
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.text import normalize

_WORD = re.compile(r"[^\W_]+")
_WORD_LENGTH, _MAX_WORDS = 40, 2_000
# Matches of the rarest word that are read and sorted; for more, the nearest in time are searched for first.
_FEW, _NEAREST = 1_000, 5_000
_SNIPPET, _BEFORE_MATCH, _SCANNED = 160, 50, 5_000  # characters

# --- Words ------------------------------------------------------------------------------------------------------------


def split_words(text: str) -> list[str]:
    """Return the words of a text, without case and accents."""
    return [word[:_WORD_LENGTH] for word in _WORD.findall(normalize(text))]


class Words(NamedTuple):
    """What is searched for: every one of the `whole` words, and one that begins with `beginning`."""

    whole: tuple[str, ...]
    beginning: str

    def occur_in(self, words: Collection[str]) -> bool:
        """Return whether all of them are among some words."""
        return all(word in words for word in self.whole) and any(word.startswith(self.beginning) for word in words)


def words_of(query: str) -> Words | None:
    """Return what a query searches for: the last word may be a beginning. None if it has no word."""
    *whole, beginning = split_words(query) or [""]
    return Words(tuple(dict.fromkeys(whole)), beginning) if beginning else None


def snippet_of(text: str, words: Words) -> str:
    """Return the part of a text around the first of the words, in one line."""
    line = " ".join(text.split())
    if len(line) <= _SNIPPET:
        return line
    scanned = line[:_SCANNED]
    folded, positions = [], []
    for position, character in enumerate(scanned):
        for each in _fold(character):
            folded.append(each)
            positions.append(position)
    alternatives = "|".join([*(rf"{word}(?![^\W_])" for word in words.whole), words.beginning])
    match = re.search(rf"(?<![^\W_])(?:{alternatives})", "".join(folded))
    start = max(0, positions[match.start()] - _BEFORE_MATCH) if match else 0
    start = line.rfind(" ", 0, start) + 1 if start else 0
    end = start + _SNIPPET
    if end < len(line) and (space := line.rfind(" ", start, end)) > start + _SNIPPET // 2:
        end = space
    return ("… " if start else "") + line[start:end].strip() + (" …" if end < len(line) else "")


@lru_cache(4_096)
def _fold(character: str) -> str:
    return " " if character == " " else normalize(character)


# --- Entries ----------------------------------------------------------------------------------------------------------


class SearchEntry(declared.Stored):
    """The words of one text of the document `documentId` of `source`, in no order; `at`: when the text is from."""

    customerId: ObjectId | None
    type: str
    source: str
    documentId: ObjectId
    words: list[str]
    at: datetime


_BY_WORD, _BY_TIME = ("type", "words", "customerId"), ("type", "-at", "customerId")
entries = Documents[SearchEntry](
    "searchTexts",
    (declared.Index(("customerId", "_id")), declared.Index(_BY_WORD), declared.Index(_BY_TIME)),
    client_field="customerId",
    transfer=declared.NotExported("it follows from the texts of other collections"),
    incidental=True,
    cross_company_reason="the entries of all companies are checked",
)


def searched_collections() -> dict[str, tuple[Documents[Any], declared.Searched]]:
    """Return the collections whose texts are found, by name."""
    return {name: (each, each.searched) for name, each in registry.items() if each.searched is not None}


async def update_entries(ctx: Context, event: DocumentsWritten) -> None:
    """Store the words of the texts that a transaction has written, and remove those of texts that are gone."""
    written: defaultdict[str, list[DocumentChange]] = defaultdict(list)
    for change in event.documents:
        if registry[change.collection].searched is not None:
            written[change.collection].append(change)
    for name, changes in written.items():
        collection, searched = searched_collections()[name]
        created = [change.after for change in changes if change.action == "created" and change.after is not None]
        await store_entries(ctx, collection, created)
        others = [change for change in changes if change.action != "created"]
        changed = [each.id for each in others if each.action == "deleted" or _has_other_text(searched, each)]
        await renew_entries(ctx, collection, changed)


def _has_other_text(searched: declared.Searched, change: DocumentChange) -> bool:
    before: Document = {}
    after: Document = {}
    for path, (earlier, later) in change.values.items():
        if path.partition(".")[0] in searched.fields:
            set_path(before, path, earlier)
            set_path(after, path, later)
    return [*searched.texts(before)] != [*searched.texts(after)]


async def store_entries(ctx: Context, collection: Documents[Any], documents: Iterable[Mapping[str, Any]]) -> None:
    """Store the words of the texts of documents, in the caller's transaction."""
    at = now()
    metadata = {"createdAt": at, "updatedAt": at, "version": 0}
    stored = {key: entry for document in documents for key, entry in entries_of(collection, document).items()}
    writes = [({"_id": key}, {"$set": entry, "$setOnInsert": metadata}) for key, entry in stored.items()]
    await entries.set_derived_each(ctx, writes, upsert=True)


async def renew_entries(ctx: Context, collection: Documents[Any], ids: Collection[ObjectId]) -> None:
    """Store the words of the texts that documents have now, in the caller's transaction, and remove all others."""
    if collection.searched is None or not ids:
        return
    documents = await collection.find(ctx, {"_id": {"$in": list(ids)}}, fields=fields_of(collection), hint="_id_")
    kept = {key for document in documents for key in entries_of(collection, document)}
    known = {_entry_id(kind, each) for each in ids for kind in collection.searched.types}
    await store_entries(ctx, collection, documents)
    if gone := known - kept:
        await entries.delete_many(ctx, {"_id": {"$in": sorted(gone)}})


def fields_of(collection: Documents[Any]) -> tuple[str, ...]:
    """Return the fields that the entries of a document follow from."""
    searched = collection.searched.fields if collection.searched else ()
    return (*searched, *([collection.client_field] if collection.client_field else []))


def entries_of(collection: Documents[Any], document: Mapping[str, Any]) -> dict[ObjectId, Document]:
    """Return the entries that a document has, by identifier; none if it belongs to no client but could."""
    client_id = document.get(collection.client_field) if collection.client_field else None
    if collection.searched is None or (collection.client_field and client_id is None):
        return {}
    found: dict[ObjectId, Document] = {}
    for kind, title, text, at, is_named in collection.searched.texts(document):
        words = list(dict.fromkeys(split_words(f"{title}\n{text}" if is_named else text)))[:_MAX_WORDS]
        if words and at is not None:
            found[_entry_id(kind, document["_id"])] = {
                "customerId": client_id,
                "type": kind,
                "source": collection.name,
                "documentId": document["_id"],
                "words": words,
                "at": datetime.fromisoformat(at) if isinstance(at, str) else at,
            }
    return found


async def read_words(services: Services, ids: Collection[ObjectId], session: Any) -> dict[ObjectId, set[str]]:
    """Return the stored words of entries of any company."""
    found = entries.across_companies(services).find({"_id": {"$in": list(ids)}}, {"words": 1}, session=session)
    return {entry["_id"]: {*entry["words"]} async for entry in found}


def _entry_id(kind: str, document_id: ObjectId) -> ObjectId:
    return stable_id("search", kind, str(document_id))


# --- Finding ----------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A text that was found, as it is now, and the document that it is of."""

    document_id: ObjectId
    customer_id: ObjectId | None
    text: declared.SearchedText


async def find(
    ctx: Context,
    words: Words,
    types: Collection[declared.SearchedType],
    customer_ids: Sequence[ObjectId] | None,
    limit: int,
) -> list[Found]:
    """Return at most `limit` texts with all of the words, those nearest in time first; access is not checked.

    Only of the clients `customer_ids`; None: all. The rarest of the words is looked up, and its texts are compared with
    the others. If even that one has many texts, most of what is near in time is likely to have enough of them.
    """
    if not types or customer_ids == []:
        return []
    among: Filter = {"type": {"$in": sorted(types)}}
    if customer_ids is not None:
        among["customerId"] = {"$in": list(customer_ids)}
    by_word = entries.index_name(*_BY_WORD)
    terms: list[Any] = [*words.whole, {"$regex": f"^{words.beginning}"}]
    counts = await gather_reads(
        ctx, *(entries.count(ctx, {**among, "words": term}, limit=_FEW + 1, hint=by_word) for term in terms)
    )
    rarest = terms[counts.index(min(counts))]
    nearest: list[SearchEntry] = []
    if min(counts) > _FEW:
        nearest = await _find_nearest(ctx, among, terms, limit)
    if len(nearest) < limit and min(counts):
        others = [term if isinstance(term, dict) else {"$eq": term} for term in terms if term is not rarest]
        # As negations, which use no index: the rarest word does.
        rest: Filter = {"$nor": [{"words": {"$not": term}} for term in others]} if others else {}
        distance = {"$set": {"distance": {"$abs": {"$subtract": ["$at", "$$NOW"]}}}}
        order = {"$sort": {"distance": 1, "_id": 1}}
        matching = {**among, "words": rarest, **rest}
        nearest = await entries.aggregate(ctx, matching, _FOUND, distance, order, {"$limit": limit}, hint=by_word)
    return await _read_texts(ctx, nearest)


async def _find_nearest(ctx: Context, among: Filter, terms: Sequence[Any], limit: int) -> list[SearchEntry]:
    """Return the texts with all `terms` among the last before now and the first after it."""
    has_terms: Filter = {"$match": {"$and": [{"words": term} for term in terms]}}
    at = now()
    sides = [({"$lte": at}, -1), ({"$gt": at}, 1)]
    before, after = await gather_reads(
        ctx,
        *(
            entries.aggregate(
                ctx,
                {**among, "at": side},
                {"$sort": {"at": order}},
                {"$limit": _NEAREST},
                has_terms,
                {"$limit": limit},
                _FOUND,
                hint=entries.index_name(*_BY_TIME),
            )
            for side, order in sides
        ),
    )
    found: list[SearchEntry] = sorted([*before, *after], key=lambda entry: (abs(entry["at"] - at), entry["_id"]))
    return found[:limit]


_FOUND: Document = {"$project": dict.fromkeys(("customerId", "type", "source", "documentId", "at"), 1)}


async def _read_texts(ctx: Context, found: Sequence[SearchEntry]) -> list[Found]:
    """Return the texts of entries as they are now; what is gone meanwhile is left out."""
    ids: defaultdict[str, set[ObjectId]] = defaultdict(set)
    for entry in found:
        ids[entry["source"]].add(entry["documentId"])
    searched_of = searched_collections()
    sources = [(*searched_of[name], wanted) for name, wanted in ids.items() if name in searched_of]
    listed = await gather_reads(
        ctx,
        *(
            collection.find(ctx, {"_id": {"$in": sorted(wanted)}}, fields=searched.fields, hint="_id_")
            for collection, searched, wanted in sources
        ),
    )
    texts: dict[tuple[str, ObjectId], declared.SearchedText] = {
        (text.type, document["_id"]): text
        for (_, searched, _), documents in zip(sources, listed, strict=True)
        for document in documents
        for text in searched.texts(document)
    }
    return [
        Found(entry["documentId"], entry["customerId"], text)
        for entry in found
        if (text := texts.get((entry["type"], entry["documentId"]))) is not None
    ]
