"""Results of tools that read: exactly of the declared schema, and no larger as data than as text."""

from __future__ import annotations

from functools import cache
from typing import Any

import orjson
from jsonschema_rs import Draft202012Validator

from coaching_service import features
from coaching_service.core.mcp import output_schema, tools_of

# What the data adds to the text of each entry, and of the list: names of members, and identifiers apart.
_OF_ENTRY, _OF_RESULT = 45, 160


@cache
def _validators() -> dict[str, Draft202012Validator]:
    declared = {tool.name: tool.returns for tool in tools_of(features.TOOLS)}
    return {
        name: Draft202012Validator(_closed(output_schema(model, with_entries=True)))
        for name, model in declared.items()
        if model is not None
    }


def _closed(schema: Any) -> Any:
    """A schema whose objects have no other members than those it names."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    return closed | {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else closed


def check_output(tool: str, arguments: dict[str, Any], result: dict[str, Any]) -> None:
    """Assert that the data of a result is of the schema that its tool declares, and that it repeats no more than text."""
    if result.get("isError") or tool not in _validators():
        return
    data, text = result["structuredContent"], result["content"][0]["text"]
    _validators()[tool].validate(data)
    assert not text.startswith("{"), f"{tool} returns JSON as text"
    if arguments.get("detail") == "full" or "docs" not in data:
        return  # which adds the items as objects, or is about one record
    entries = len(data.get("docs", ())) + len(data.get("weeks", ()))
    size = len(orjson.dumps(data)) - str(data).count("\\n")  # JSON has two characters for the end of a line
    assert size <= len(text.encode()) + entries * _OF_ENTRY + _OF_RESULT, (tool, text, data)
