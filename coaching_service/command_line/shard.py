"""Printing the commands that shard the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import click

from coaching_service import app  # noqa: F401 - it declares all collections
from coaching_service.command_line.options import settings_with
from coaching_service.core.database.collections import BY_COMPANY, ReadableCollection, ShardKey, find_index
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.ids import ObjectId


class _CompanyId(click.ParamType[ObjectId]):
    name = "ID"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> ObjectId:
        if not ObjectId.is_valid(str(value)):
            self.fail("a company is named by its identifier: 24 hexadecimal digits", param, ctx)
        return ObjectId(str(value))


@click.command()
@click.option("--plan", is_flag=True, required=True, help="Print the commands; nothing is changed.")
@click.option("--zone", help="Print only the commands that bind companies to this zone.")
@click.option("--company", "companies", type=_CompanyId(), multiple=True, help="A company of the zone; repeatable.")
def shard(*, plan: bool, zone: str | None, companies: tuple[ObjectId, ...]) -> None:
    """Print the commands for mongosh that shard the collections of MONGODB_DATABASE as they are declared.

    Run them on a mongos after the service has created the indexes. docs/growing.md says when this is needed.
    """
    del plan
    if bool(zone) != bool(companies):
        raise click.UsageError("--zone and --company are used together")
    database, collections = settings_with().mongodb_database, declared_collections()
    if zone:
        lines = list_zone_commands(database, collections, companies, zone)
    else:
        lines = list_sharding_commands(database, collections)
    click.echo("\n".join(lines))


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
