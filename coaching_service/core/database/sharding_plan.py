"""The commands for mongosh that shard the collections as they are declared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from coaching_service.core.database.collections import BY_COMPANY, ReadableCollection, ShardKey, find_index
from coaching_service.core.ids import ObjectId

Collections = Mapping[str, ReadableCollection[Any]]


def list_sharding_commands(database: str, collections: Collections) -> list[str]:
    """Return the lines that shard `collections` in `database` by their placements; the others as comments."""
    lines = [f"sh.enableSharding({_text(database)})", f"db = db.getSiblingDB({_text(database)})"]
    for name, collection in sorted(collections.items()):
        placement = collection.placement
        if not isinstance(placement, ShardKey):
            lines.append(f"// {name} is not sharded: {placement.reason}")
            continue
        key = _text(placement.pattern)
        if find_index(placement, collection.indexes) is None:
            lines.append(f"db.getCollection({_text(name)}).createIndex({key})")
        lines.append(f"sh.shardCollection({_text(f'{database}.{name}')}, {key})")
    return lines


def list_zone_commands(database: str, collections: Collections, companies: Iterable[ObjectId], zone: str) -> list[str]:
    """Return the lines that bind the documents of `companies` to the shards of `zone`."""
    names = sorted(name for name, each in collections.items() if each.placement == BY_COMPANY)
    return [
        f"sh.updateZoneKeyRange({_text(f'{database}.{name}')}, "
        f"{_bound(company)}, {_bound(_next(company))}, {_text(zone)})"
        for company in companies
        for name in names
    ]


def _next(identifier: ObjectId) -> ObjectId:
    """Return the identifier after this one: the end of a range with this one only."""
    return ObjectId((int.from_bytes(identifier.binary, "big") + 1).to_bytes(12, "big"))


def _bound(company: ObjectId) -> str:
    return f'{{"companyId": ObjectId("{company}")}}'


def _text(value: object) -> str:
    return json.dumps(value)
