"""The declaration of a tool. Serving, its listing, permissions and the generated tests all read it."""

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
    """One thing an assistant can do: what it is called, who may call it, what it takes.

    `takes` is a schema instance; the handler is given its fields by their names in snake case and gives a JSON
    object. `writes`: it changes something. `destructive`: it may replace what was there. `idempotent`: repeated
    with the same arguments it changes nothing more. `open_world`: it reaches people outside (a mail).
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
        """What assistants call it by."""
        return self.handler.__name__

    @cached_property
    def description(self) -> str:
        """The handler's docstring: what an assistant reads."""
        return " ".join((inspect.getdoc(self.handler) or "").split())

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of what it takes."""
        return input_schema(self.takes)

    async def call(self, ctx: Context, arguments: dict[str, Any]) -> Mapping[str, Any]:
        """The answer for arguments that have been judged.

        What a tool that writes does is one transaction, with the reading for its answer: a call that fails changes
        nothing.
        """

        async def called(within: Context) -> Mapping[str, Any]:
            return await self.handler(within, **{snake_case(name): value for name, value in arguments.items()})

        return await (in_transaction(ctx, called) if self.writes else called(ctx))


class Tools:
    """The tools of one feature."""

    def __init__(self) -> None:
        self.declared: list[Tool] = []

    def tool(self, title: str, *, access: Access, takes: Schema, **hints: bool) -> Callable[[ToolHandler], ToolHandler]:
        """Declare a tool. `hints`: writes, destructive, idempotent, open_world."""

        def declare(handler: ToolHandler) -> ToolHandler:
            if not handler.__doc__:
                raise TypeError(f"{handler.__name__}: a tool needs a docstring, which is what assistants read")
            self.declared.append(Tool(title, handler, access, takes, **hints))
            return handler

        return declare


def tools_of(groups: Sequence[Tools]) -> list[Tool]:
    """Every tool of the groups, in the order of their declaration."""
    return [tool for group in groups for tool in group.declared]
