"""Printing the commands that shard the database."""

from __future__ import annotations

import click

from coaching_service import app  # noqa: F401 - it declares all collections
from coaching_service.command_line.options import settings_with
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.database.sharding_plan import list_sharding_commands, list_zone_commands
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
