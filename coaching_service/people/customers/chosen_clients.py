"""The clients that a tool is about: one, several, or those of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import require_permission
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, InvalidFields, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments, optional
from coaching_service.core.mcp.results import typed
from coaching_service.core.validation import Identifier, ListOf, Text
from coaching_service.core.validation_messages import Message, invalid
from coaching_service.people.customers import bulk, service
from coaching_service.people.customers.models import CustomerFilter, NamedCustomer
from coaching_service.people.customers.nearest import match_groups

MAX_CLIENTS = 50


class ClientsArgument(Arguments):
    """The clients that a tool is about: one, several, or the members of groups.

    A call has exactly one of the arguments `choices`.
    """

    choices: ClassVar[tuple[str, ...]] = ("customerId", "customerIds", "groups")
    customerId = Identifier(**optional("From list_customers."))
    customerIds = ListOf(Identifier(), minimum=1, maximum=MAX_CLIENTS, **optional("Instead: up to 50 clients."))
    groups = ListOf(
        Text(max_length=100),
        minimum=1,
        maximum=MAX_CLIENTS,
        **optional("Instead: clients in any of these groups."),
    )

    @validates_schema(skip_on_field_errors=False)
    def chooses_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one way to choose clients."""
        given = [name for name in self.choices if data.get(name) is not None]
        if not given and all(name in data for name in self.choices):
            others = [name for name in self.choices[1:] if not self.fields[name].metadata.get("unlisted")]
            listed = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
            raise invalid(f"is required{f', or {listed}' if listed else ''}", "REQUIRED", "customerId")
        if len(given) > 1:
            message = Message(f"must not be combined with {given[0]}", "NOT_ALLOWED")
            raise ValidationError({name: [message] for name in given[1:]})


async def choose_clients(
    ctx: Context, customer_id: ObjectId | None, customer_ids: Sequence[ObjectId] | None, groups: Sequence[str] | None
) -> list[NamedCustomer]:
    """Return the chosen clients, of groups by name, which needs the permission to list clients.

    Raises NotFound, Forbidden, and InvalidFields that names every entry which is no client of the
    caller or no group, and for groups without clients or with more than 50.
    """
    if customer_id is not None:
        return [await service.get_visible_reference(ctx, customer_id)]
    if customer_ids is not None:
        return await _find_each(ctx, customer_ids)
    return await _list_members(ctx, groups or [])


async def name_chosen(ctx: Context, ids: Sequence[ObjectId], field: str) -> list[NamedCustomer]:
    """Return the clients of the caller among `ids`.

    Raises InvalidFields, naming `field`, for none or more than 50, and Forbidden for a caller who may not list clients.
    """
    require_permission(ctx.caller, CUSTOMERS.VIEW)
    if not ids:
        raise invalid_field(field, "has no active client", code="EMPTY")
    if len(ids) > MAX_CLIENTS:
        message = f"has {len(ids)} clients, of whom at most {MAX_CLIENTS} can be chosen: use customerIds"
        raise invalid_field(field, message, code="TOO_MANY")
    return [{"_id": each, "name": name} for each, name in (await bulk.load_names(ctx, list(ids))).items()]


async def _find_each(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[NamedCustomer]:
    ids = list(dict.fromkeys(customer_ids))
    accessible = await bulk.find_accessible(ctx, ids)
    errors: list[FieldError] = [
        {"field": f"customerIds.{index}", "code": "CUSTOMER_NOT_FOUND", "message": "was not found"}
        if each not in accessible
        else {"field": f"customerIds.{index}", "code": "FORBIDDEN", "message": "is assigned to another coach"}
        for index, each in enumerate(customer_ids)
        if not accessible.get(each)
    ]
    if errors:
        raise InvalidFields(errors)
    references = await service.find_references(ctx, ids)
    return [references[each] for each in ids]


async def _list_members(ctx: Context, groups: Sequence[str]) -> list[NamedCustomer]:
    require_permission(ctx.caller, CUSTOMERS.VIEW)  # an error names groups
    wanted = await match_groups(ctx, groups)
    if wanted.unknown:
        unknown, nearest = (", ".join(map(typed, names)) for names in (wanted.unknown, wanted.nearest))
        hint = f"; the nearest: {nearest}" if nearest else "; no client is in a group"
        raise invalid_field("groups", f"has names that no group has: {unknown}{hint}", code="UNKNOWN_NAME")
    selection: CustomerFilter = {"archived": False, "groups": wanted.known}
    ids = [each async for batch in bulk.iterate_matching(ctx, selection, MAX_CLIENTS) for each in batch]
    return await name_chosen(ctx, await keep_resolved(ctx, f"groups {sorted(wanted.known)}", ids), "groups")


async def keep_resolved(ctx: Context, key: str, ids: list[ObjectId]) -> list[ObjectId]:
    """Return the clients of a group or program without those who joined since the call was proposed."""

    async def list_now() -> list[ObjectId]:
        return ids

    resolved = await ctx.resolve(key, list_now)
    return [each for each in ids if each in resolved]


def name_clients(clients: Sequence[NamedCustomer]) -> str:
    """Return the names of clients, of several with their number: `«Ana»`, or `2 clients, «Ana», «Bo»`."""
    names = ", ".join(typed(each["name"]) for each in clients)
    return names if len(clients) == 1 else f"{len(clients)} clients, {names}"


def identify_clients(clients: Sequence[NamedCustomer]) -> dict[str, ObjectId | list[ObjectId]]:
    """Return the identifiers of clients for the result of a tool."""
    ids = [each["_id"] for each in clients]
    return {"customerId": ids[0]} if len(ids) == 1 else {"customerIds": ids}
