"""Addresses of the endpoint with fewer tools, or for one client: `/mcp?tools=read,plan` and `/mcp?customer={cid}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from multidict import MultiMapping

from coaching_service.core.auth import CUSTOMERS, Principal
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.mcp.tools import Tool
from coaching_service.people.customers import bulk

READ = "read"
# The tools that write, by group; those that read are in the group `read`.
GROUPS: Mapping[str, frozenset[str]] = {
    "plan": frozenset(
        {
            *("create_workout", "update_workout", "update_workout_items", "remove_workout", "copy_schedule"),
            *("clear_schedule", "adjust_schedule", "replace_exercise", "assign_program", "schedule_check_in"),
            *("set_training_max", "set_availability"),
        }
    ),
    "log": frozenset({"log_workout", "record_metric", "add_note", "review_check_in"}),
    "outreach": frozenset({"send_message", "create_customer", "create_customers"}),
    "library": frozenset({"save_program", "create_exercise", "import_rows"}),
}
CHOICES = (READ, *GROUPS)
# Of every address: what became of a proposal; and of every one that writes.
_ALWAYS, _OF_WRITING = frozenset({"get_proposal", "decide_proposal"}), frozenset({"undo"})
_ALTERNATIVES = ("customerIds", "groups", "assignedProgramId")


@dataclass(frozen=True)
class Narrowing:
    """What an address is narrowed to; None: to nothing."""

    groups: frozenset[str] | None = None
    customer_id: ObjectId | None = None

    def narrow(self, principal: Principal) -> Principal:
        """Return the caller with the rights of this address. Other clients are out of scope, and none is created."""
        if self.customer_id is not None:
            permissions = principal.permissions - {CUSTOMERS.CREATE}
            principal = replace(principal, only_customer_id=self.customer_id, permissions=permissions)
        return principal if self.groups is None else replace(principal, tool_groups=self.groups)


def read_narrowing(query: MultiMapping[str]) -> Narrowing:
    """Return what the query of an address says. Raises BadRequest for unknown parameters and values."""
    groups, customer_id = None, None
    if unknown := sorted({*query} - {"tools", "customer"}):
        raise BadRequest(f"The address takes tools and customer, not {unknown[0][:50]}")
    if "tools" in query:
        named = [name.strip() for value in query.getall("tools") for name in value.split(",")]
        if not named or not {*named} <= {*CHOICES}:
            raise BadRequest(f"tools is one or several of {', '.join(CHOICES)}, separated by commas")
        groups = frozenset(named)
    if "customer" in query:
        customer_id = parse_id(query["customer"]) if len(query.getall("customer")) == 1 else None
        if customer_id is None:
            raise _unknown_client()
    return Narrowing(groups, customer_id)


async def require_client(ctx: Context) -> None:
    """Raise BadRequest if the address is for a client whom the coach does not have."""
    only = ctx.caller.only_customer_id
    if only is not None and not (await bulk.find_accessible(ctx, [only])).get(only):
        raise _unknown_client()


def _unknown_client() -> BadRequest:
    return BadRequest("customer is the _id of one client, as list_customers returns it")


def is_listed(tool: Tool, principal: Principal) -> bool:
    """Return whether the address of a caller has a tool."""
    groups = principal.tool_groups
    if groups is None or tool.name in _ALWAYS:
        return True
    if tool.name in _OF_WRITING:
        return groups != {READ}
    if not tool.writes:
        return READ in groups
    return any(tool.name in GROUPS[group] for group in groups - {READ})


def add_client(tool: Tool, principal: Principal, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call with the client of the address, if they name none."""
    if principal.only_customer_id is None or "customerId" not in tool.takes.fields:
        return sent
    if any(sent.get(name) is not None for name in ("customerId", *_ALTERNATIVES) if name in tool.takes.fields):
        return sent
    return {**sent, "customerId": str(principal.only_customer_id)}


def without_client(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of arguments for an address of one client: naming it is optional."""
    required = [name for name in schema.get("required", ()) if name != "customerId"]
    rest = {name: value for name, value in schema.items() if name != "required"}
    return rest | ({"required": required} if required else {})
