"""The declaration of a tool. The MCP server, permissions and the generated tests all read it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from marshmallow import Schema

from coaching_service.core.audit import kind_of_tool
from coaching_service.core.auth import Access
from coaching_service.core.database.context import Context, Schedule
from coaching_service.core.fields import declarations_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import UNLISTED, Arguments, input_schema, optional
from coaching_service.core.mcp.results import Answer, Reason, Written
from coaching_service.core.text import snake_case
from coaching_service.core.validation import Text

# --- What tools that read return, as a JSON Schema: exactly the fields of a TypedDict, in few words -------------------


_TYPES = {str: "string", ObjectId: "string", datetime: "string", int: "integer", float: "number", bool: "boolean"}


def output_schema(model: Any, *, with_entries: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of results with the fields of a TypedDict; a field that may be null is then left out.

    Only the fields of the result itself are said to be required. Those that may be absent, and those of entries of
    lists, are named only `with_entries`: it saves tokens, and results name what they have.
    """
    required = [each.name for each in declarations_of(model).values() if each.is_required and not each.is_nullable]
    schema = _describe_object(model, with_entries=with_entries)
    if not with_entries and required:
        schema["properties"] = {name: schema["properties"][name] for name in required}
    return {**schema, **({"required": required} if required else {})}


def _describe_object(model: Any, *, with_entries: bool) -> dict[str, Any]:
    declared = declarations_of(model).values()
    return {
        "type": "object",
        "properties": {each.name: _describe(each.hint, with_entries=with_entries) for each in declared},
    }


def _describe(hint: Any, *, with_entries: bool) -> dict[str, Any]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    [member] = [each for each in members if each is not type(None)]
    if is_typeddict(member):
        return _describe_object(member, with_entries=with_entries)
    if get_origin(member) is Literal:
        return {"type": "string"}
    if get_origin(member) in (list, Sequence):
        [entry] = get_args(member)
        is_named = is_typeddict(entry) and not with_entries
        items = {"type": "object"} if is_named else _describe(entry, with_entries=with_entries)
        return {"type": "array", "items": items}
    if get_origin(member) in (dict, Mapping):
        return {"type": "object"}
    return {"type": _TYPES[member]}


Returned = Mapping[str, Any] | Answer | Written
ToolHandler = Callable[..., Awaitable[Returned]]
Preparation = Callable[..., Awaitable[None]]
Check = Callable[[Context, Mapping[str, Any]], Awaitable[None]]


class WriteArguments(Arguments):
    """What every tool that writes takes besides its own arguments; the server consumes it.

    The token is listed only for an assistant that may confirm in the chat, and ignored from others.
    """

    idempotencyKey = Text(max_length=255, **optional("Done once per key."))
    confirmationToken = Text(max_length=64, load_default=None, allow_none=True, metadata=UNLISTED)


_TOKEN = {"type": "string", "description": "From the call to confirm, once the coach agrees."}


@dataclass(frozen=True)
class Tool:
    """One tool: its name, who may call it, and its arguments.

    `takes` is a schema instance; the handler receives its fields by their names in snake case. A tool that reads
    returns an `Answer` with the data of `returns`, a TypedDict; one that writes returns `Written`. `writes`: it changes
    something.
    `locks`: the owner of the schedule that it changes, as for routes; the argument `customerId` and so on names it.
    `destructive`: it may replace or remove existing data. `deletes`: it only removes, so that it is possible on a full
    disk. `idempotent`: repeating it with the same arguments changes
    nothing more. `open_world`: it reaches people outside the service (e-mail). `confirms`: the reasons for which it may
    have to be confirmed. `outreach`: it always reaches people or many clients, so an access without that right does not
    see it. `for_views`: the views of applications call it, assistants neither see nor call it. `unlisted`: assistants
    may call it, but do not see it. `own_calls`: it is about what the caller itself has called, so that an access
    without the right to read may call it. `prepare` is called with the arguments before the transaction. `check` finds
    the errors of those without others when some are invalid.
    """

    title: str
    handler: ToolHandler
    access: Access
    takes: Schema
    returns: Any = None
    writes: bool = False
    locks: Schedule | None = None
    destructive: bool = False
    deletes: bool = False
    idempotent: bool = False
    open_world: bool = False
    outreach: bool = False
    for_views: bool = False
    unlisted: bool = False
    own_calls: bool = False
    confirms: frozenset[Reason] = frozenset()
    prepare: Preparation | None = None
    check: Check | None = None

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.handler.__name__

    @property
    def kind(self) -> str:
        """What of a client's record it returns, for the audit log."""
        return kind_of_tool(self.name)

    @cached_property
    def description(self) -> str:
        """The handler's docstring, for assistants."""
        return " ".join((inspect.getdoc(self.handler) or "").split())

    @cached_property
    def control(self) -> Schema | None:
        """The schema of the arguments that the server consumes; None for a tool that reads."""
        return WriteArguments() if self.writes else None

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        schema = input_schema(self.takes)
        if self.control is not None:
            schema["properties"] |= input_schema(self.control)["properties"]
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the data of its results; None for a tool that writes."""
        return None if self.returns is None else output_schema(self.returns)

    @property
    def input_schema_in_chat(self) -> dict[str, Any]:
        """The JSON Schema of its arguments for an assistant that may confirm a call itself."""
        return {**self.input_schema, "properties": {**self.input_schema["properties"], "confirmationToken": _TOKEN}}

    async def call(self, ctx: Context, arguments: Mapping[str, Any]) -> Returned:
        """Call the handler with validated arguments and return its result."""
        return await self.handler(ctx, **_by_parameter(arguments))

    async def call_preparation(self, ctx: Context, arguments: Mapping[str, Any]) -> None:
        """Do what comes before the transaction."""
        if self.prepare is not None:
            await self.prepare(ctx, **_by_parameter(arguments))


def _by_parameter(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {snake_case(name): value for name, value in arguments.items()}


class Tools:
    """The tools of one feature."""

    def __init__(self) -> None:
        self.declared: list[Tool] = []

    def tool(
        self,
        title: str,
        *,
        access: Access,
        takes: Schema,
        confirms: Iterable[Reason] = (),
        **options: Any,
    ) -> Callable[[ToolHandler], ToolHandler]:
        """Declare a tool. `options` are further fields of Tool, such as `returns` or `writes`."""

        def declare(handler: ToolHandler) -> ToolHandler:
            if not handler.__doc__:
                raise TypeError(f"{handler.__name__}: a tool needs a docstring, its description for assistants")
            self.declared.append(Tool(title, handler, access, takes, confirms=frozenset(confirms), **options))
            return handler

        return declare


def tools_of(groups: Sequence[Tools]) -> list[Tool]:
    """Return every tool of the groups, in the order of their declaration."""
    return [tool for group in groups for tool in group.declared]
