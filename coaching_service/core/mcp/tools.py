"""The declaration of a tool. The MCP server, permissions and the generated tests all read it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from marshmallow import Schema

from coaching_service.core.auth.access import Access
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.mcp.arguments import input_schema
from coaching_service.core.text import snake_case

ToolHandler = Callable[..., Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class Tool:
    """One tool: its name, who may call it, and its arguments.

    `takes` is a schema instance; the handler receives its fields by their names in snake case and returns a
    JSON object. `writes`: it changes something. `destructive`: it may replace existing data. `idempotent`: repeating it
    with the same arguments changes nothing more. `open_world`: it reaches people outside the service (e-mail).
    """

    title: str
    handler: ToolHandler
    access: Access
    takes: Schema
    writes: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.handler.__name__

    @cached_property
    def description(self) -> str:
        """The handler's docstring, for assistants."""
        return " ".join((inspect.getdoc(self.handler) or "").split())

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return input_schema(self.takes)

    async def call(self, ctx: Context, arguments: dict[str, Any]) -> Mapping[str, Any]:
        """Call the handler with validated arguments and return its result.

        A tool that writes runs in one transaction: a call that fails changes nothing.
        """

        async def call_handler(tx: Context) -> Mapping[str, Any]:
            return await self.handler(tx, **{snake_case(name): value for name, value in arguments.items()})

        return await (in_transaction(ctx, call_handler) if self.writes else call_handler(ctx))


class Tools:
    """The tools of one feature."""

    def __init__(self) -> None:
        self.declared: list[Tool] = []

    def tool(self, title: str, *, access: Access, takes: Schema, **hints: bool) -> Callable[[ToolHandler], ToolHandler]:
        """Declare a tool. `hints`: writes, destructive, idempotent, open_world."""

        def declare(handler: ToolHandler) -> ToolHandler:
            if not handler.__doc__:
                raise TypeError(f"{handler.__name__}: a tool needs a docstring, its description for assistants")
            self.declared.append(Tool(title, handler, access, takes, **hints))
            return handler

        return declare


def tools_of(groups: Sequence[Tools]) -> list[Tool]:
    """Returns every tool of the groups, in the order of their declaration."""
    return [tool for group in groups for tool in group.declared]
