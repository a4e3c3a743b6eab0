"""The names nearest to one that no client or group has: what to suggest when a search finds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz, process

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.results import typed
from coaching_service.core.text import normalize, straighten
from coaching_service.people.customers import list_store, service

# Names that are compared of active, and of archived clients: the first in the order of the list.
_COMPARED, _SUGGESTED, _MIN_SCORE = 20_000, 5, 65


class NearClient(NamedTuple):
    """A client with a similar name."""

    id: ObjectId
    name: str
    is_archived: bool


class GroupNames(NamedTuple):
    """The groups that are meant, as the company writes them; the names that no group has; and what is near to these."""

    known: list[str]
    unknown: list[str]
    nearest: list[str]


async def find_near_clients(ctx: Context, text: str) -> list[NearClient]:
    """Return clients in the coach's scope whose names are nearest to a text, the nearest first, archived ones too."""
    wanted, names, archived_ids = _comparable(text), dict[ObjectId, str](), set[ObjectId]()
    for archived in (False, True):
        where, _ = service.build_list_filter(ctx, archived, None, None)
        for client in await list_store.list_sort_names(ctx, where, _COMPARED):
            names[client["_id"]] = straighten(f"{client['sortName']} {client['sortSurname']}")
            if archived:
                archived_ids.add(client["_id"])
    near = process.extract(wanted, names, scorer=fuzz.WRatio, limit=_SUGGESTED, score_cutoff=_MIN_SCORE)
    references = await service.find_references(ctx, [each for _, _, each in near])
    return [
        NearClient(each, references[each]["name"], each in archived_ids) for _, _, each in near if each in references
    ]


async def match_groups(ctx: Context, names: Sequence[str]) -> GroupNames:
    """Return the groups of clients that names mean, without regard to case, accents and the kind of apostrophe."""
    if not names:
        return GroupNames([], [], [])
    groups = [group["name"] for group in await service.list_groups(ctx)]
    by_text = {_comparable(group): group for group in groups}
    known = [group for group in groups if _comparable(group) in {_comparable(name) for name in names}]
    unknown = [name for name in names if _comparable(name) not in by_text]
    nearest = [
        by_text[text]
        for name in unknown
        for text, _, _ in process.extract(_comparable(name), list(by_text), scorer=fuzz.WRatio, limit=_SUGGESTED)
    ]
    return GroupNames(known, unknown, list(dict.fromkeys(nearest))[:_SUGGESTED])


def suggest_groups(wanted: GroupNames) -> str:
    """Return what to tell about names that no group has, with the nearest ones; empty if there are none."""
    if not wanted.unknown:
        return ""
    unknown, nearest = [", ".join(map(typed, names)) for names in (wanted.unknown, wanted.nearest)]
    return f"There is no group {unknown}." + (f" The nearest: {nearest}." if nearest else "")


def _comparable(text: str) -> str:
    return straighten(normalize(text))
