"""The settings of the account in an export."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.json_conversion import converter_of
from coaching_service.integrations.company_export.format import ACCOUNT
from coaching_service.integrations.company_import._archive_reader import ArchiveReader, InvalidArchive
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AccountDetails, AccountNotifications, AttentionSettings, LoadUnit
from coaching_service.people.customers import service as customers


class AccountSettings(TypedDict):
    """The account of an export."""

    _id: ObjectId
    companyName: str
    timezone: str
    loadUnit: LoadUnit
    hasStoredLoads: bool
    notifications: AccountNotifications
    attention: NotRequired[AttentionSettings]
    clientsMayImport: NotRequired[bool]
    clientsMayMove: NotRequired[bool]
    clientsMayAdd: NotRequired[bool]


def read_account(reader: ArchiveReader) -> AccountSettings:
    """Return the account of an export. Raises InvalidArchive if it is not valid."""
    try:
        settings: AccountSettings = converter_of(AccountSettings)(
            reader.read_object(ACCOUNT), "", lambda identifier, _: identifier
        )
    except InvalidFields as error:
        raise InvalidArchive(f"{error.errors[0]['field']} {error.errors[0]['message']}", ACCOUNT) from None
    problems = input_of(AccountDetails)().validate(_change_of(settings))
    if problems:
        raise InvalidArchive(f"{next(iter(problems))} is not valid", ACCOUNT)
    return settings


def _change_of(settings: AccountSettings) -> Any:
    return take(AccountDetails, settings)


async def apply_account(ctx: Context, settings: AccountSettings, *, is_dry_run: bool) -> None:
    """Take over the settings into an empty company, in the caller's transaction; one with clients keeps its own.

    Raises Conflict if the export has loads in another unit than the company's.
    """
    current = await account.get(ctx)
    is_empty = not await customers.has_any(ctx)
    if is_empty and not await account.has_stored_loads(ctx):
        if not is_dry_run:
            await account.update(ctx, _change_of(settings))
    elif settings["hasStoredLoads"] and settings["loadUnit"] != current["loadUnit"]:
        raise Conflict(f"has loads in {settings['loadUnit']}, and the company has loads in {current['loadUnit']}")
    if settings["hasStoredLoads"] and not is_dry_run:
        await account.lock_stored_unit(ctx)
    if not is_dry_run:
        await account.record_overrides(ctx)  # the export may have some
