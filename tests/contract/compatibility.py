"""Compares two OpenAPI documents: what a program written for the released one may no longer rely on.

Schemas are compared as they are sent: references are resolved and names of schemas do not matter. A request may accept more
than before, and a successful response may have new properties; everything else is reported. Of a union, each kind of value
is compared. Error responses have one shape, which other tests check.

    python -m tests.contract.compatibility VERSION

stores the snapshot of the API document as the one of a release.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

Json = dict[str, Any]
HERE = Path(__file__).parent
# What a stored document leaves out.
TEXTS = (
    "description",
    "summary",
    "example",
    "examples",
    "tags",
    "operationId",
    "x-access",
    "x-retry",
    "x-retry-policy",
)
# Limits of a request: an input is narrower with a larger one, or with a smaller one.
LOWER, UPPER = ("minimum", "minLength", "minItems"), ("maximum", "maxLength", "maxItems")


def breaking_changes(released: Json, current: Json) -> list[tuple[str, str]]:
    """What has changed for programs: pairs of an operation and the change."""
    findings: list[tuple[str, str]] = []
    after = dict(operations(current))
    for name, operation in operations(released):
        changes = compare_operations(operation, after[name]) if name in after else ["removed"]
        findings += [(name, change) for change in changes]
    return findings


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    """The operations of a document by method and path, with references resolved."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", resolve(operation, document)


def resolve(node: Any, document: Json) -> Any:
    """A part of a document with its references replaced by what they refer to, and without texts for people."""
    if isinstance(node, list):
        return [resolve(each, document) for each in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return resolve(target, document)
    if node.get("format") == "url":  # the name that release 0.1.0 used for `uri`
        node = {**node, "format": "uri"}
    return {name: resolve(value, document) for name, value in node.items() if name not in ("example", "examples")}


def compare_operations(old: Json, new: Json) -> list[str]:
    """The breaking changes of one operation."""
    findings = [*compare_parameters(old, new), *compare_bodies(old.get("requestBody"), new.get("requestBody"))]
    for status, response in old["responses"].items():
        if status in new["responses"] and status.startswith("2"):
            findings += compare_responses(f"response {status}", response, new["responses"][status])
        elif status.startswith("2"):
            findings.append(f"response {status}: removed")
    if old.get("security") and new.get("security"):
        removed = [scheme for scheme in old["security"] if scheme not in new["security"]]
        findings += [f"credential {'+'.join(scheme)}: removed" for scheme in removed]
    return list(dict.fromkeys(findings))


def compare_parameters(old: Json, new: Json) -> Iterator[str]:
    """The breaking changes of the parameters. Names in paths do not matter."""
    before, after = parameters_of(old), parameters_of(new)
    for where, parameter in before.items():
        if where not in after:
            yield f"{where}: removed"
            continue
        if after[where].get("required") and not parameter.get("required"):
            yield f"{where}: required"
        yield from compare_inputs(where, parameter["schema"], after[where]["schema"])
    for where in after.keys() - before.keys():
        if after[where].get("required"):
            yield f"{where}: new and required"


def parameters_of(operation: Json) -> dict[str, Json]:
    """The parameters other than those of the path, by place and name."""
    parameters = operation.get("parameters", [])
    return {f"{each['in']} parameter {each['name']}": each for each in parameters if each["in"] != "path"}


def compare_bodies(old: Json | None, new: Json | None) -> Iterator[str]:
    """The breaking changes of the request body."""
    if new is None:
        if old is not None:
            yield "request: removed"
        return
    if new.get("required") and not (old or {}).get("required"):
        yield "request: required"
    for media_type, content in (old or {"content": {}})["content"].items():
        if media_type in new["content"]:
            yield from compare_inputs("request", content["schema"], new["content"][media_type]["schema"])
        else:
            yield f"request: {media_type} removed"


def compare_responses(where: str, old: Json, new: Json) -> Iterator[str]:
    """The breaking changes of one response."""
    for media_type, content in old.get("content", {}).items():
        if media_type in new.get("content", {}):
            yield from compare_outputs(where, content["schema"], new["content"][media_type]["schema"])
        else:
            yield f"{where}: {media_type} removed"


def compare_inputs(where: str, old: Json, new: Json) -> Iterator[str]:
    """What a request could contain and no longer can."""
    before, after = kinds_of_both(old, new)
    for kind, schema in before.items():
        if (counterpart := find_kind(kind, after)) is None:
            yield f"{where}: no longer {kind}"
        else:
            yield from compare_input_kind(where, schema, counterpart)


def compare_input_kind(where: str, old: Json, new: Json) -> Iterator[str]:
    """The same for one kind of value."""
    if (accepted := values_of(new)) is not None:
        removed = (values_of(old) or set()) - accepted
        if values_of(old) is None:
            yield f"{where}: only {listed(accepted)}"
        elif removed:
            yield f"{where}: no longer {listed(removed)}"
    for name in (*LOWER, *UPPER):
        if name in new and (name not in old or ((new[name] > old[name]) is (name in LOWER) and new[name] != old[name])):
            yield f"{where}: {name} {new[name]}"
    for name in ("pattern", "format"):
        if name in new and new[name] != old.get(name):
            yield f"{where}: {name} {new[name]}"
    if "items" in old and "items" in new:
        yield from compare_inputs(f"{where}[]", old["items"], new["items"])
    after = new.get("properties", {})
    for name, schema in old.get("properties", {}).items():
        if name in after:
            yield from compare_inputs(f"{where}.{name}", schema, after[name])
        else:
            yield f"{where}.{name}: removed"
    for name in required(new) - required(old):
        yield f"{where}.{name}: required"


def compare_outputs(where: str, old: Json, new: Json) -> Iterator[str]:
    """What a response was certain to be and no longer is."""
    before, after = kinds_of_both(old, new)
    for kind, schema in after.items():
        if (counterpart := find_kind(kind, before)) is None:
            yield f"{where}: can be {kind}"
        else:
            yield from compare_output_kind(where, counterpart, schema)


def compare_output_kind(where: str, old: Json, new: Json) -> Iterator[str]:
    """The same for one kind of value."""
    if (expected := values_of(old)) is not None:
        added = (values_of(new) or set()) - expected
        if values_of(new) is None:
            yield f"{where}: any value"
        elif added:
            yield f"{where}: can be {listed(added)}"
    if "format" in old and old["format"] != new.get("format"):
        yield f"{where}: no longer has the format {old['format']}"
    if "items" in old and "items" in new:
        yield from compare_outputs(f"{where}[]", old["items"], new["items"])
    after = new.get("properties", {})
    for name, schema in old.get("properties", {}).items():
        if name in after:
            yield from compare_outputs(f"{where}.{name}", schema, after[name])
        else:
            yield f"{where}.{name}: removed"
    for name in required(old) - required(new):
        if name in after:
            yield f"{where}.{name}: can be absent"


def by_kind(schema: Json) -> dict[str, Json]:
    """The alternatives of a schema by kind of value: the type, and for objects with a constant `type` that constant."""
    kinds: dict[str, Json] = {}
    if variants := schema.get("oneOf") or schema.get("anyOf"):
        for variant in variants:
            for kind, alternative in by_kind(variant).items():
                kinds[kind] = united(kinds[kind], alternative) if kind in kinds else alternative
        return kinds
    types = schema.get("type", "object" if "properties" in schema else "any")
    for kind in types if isinstance(types, list) else [types]:
        tag = values_of(schema.get("properties", {}).get("type", {})) if kind == "object" else None
        if kind == "null":
            kinds[kind] = {"type": "null"}
        elif tag is not None and len(tag) == 1 and "type" in required(schema):
            kinds[f"object of type {listed(tag)}"] = schema
        else:
            kinds[kind] = schema
    return kinds


def kinds_of_both(old: Json, new: Json) -> tuple[dict[str, Json], dict[str, Json]]:
    """The alternatives of two schemas. If one of them does not tell objects by type, all objects are one kind."""
    both = by_kind(old), by_kind(new)
    return (with_one_object(both[0]), with_one_object(both[1])) if any("object" in kinds for kinds in both) else both


def with_one_object(kinds: dict[str, Json]) -> dict[str, Json]:
    """Alternatives in which all objects are one kind."""
    objects = [schema for kind, schema in kinds.items() if kind.startswith("object")]
    others = {kind: schema for kind, schema in kinds.items() if not kind.startswith("object")}
    return {**others, "object": reduce(united, objects)} if objects else others


def find_kind(kind: str, kinds: Mapping[str, Json]) -> Json | None:
    """The alternative for a kind of value, or a more general one."""
    if kind == "integer" and "integer" not in kinds:
        kind = "number"
    return kinds.get(kind, {} if "any" in kinds else None)


def united(left: Json, right: Json) -> Json:
    """One schema for two of one kind: the properties of both, of which those are required that both require."""
    both: Json = {**right, **left, "required": sorted(required(left) & required(right))}
    both["properties"] = {**right.get("properties", {}), **left.get("properties", {})}
    for name, schema in right.get("properties", {}).items():
        known = left.get("properties", {}).get(name)
        if known is not None and values_of(known) is not None and values_of(schema) is not None:
            values = {**dict.fromkeys(enumerated(known)), **dict.fromkeys(enumerated(schema))}
            both["properties"][name] = {**known, "const": None, "enum": list(values)}
            both["properties"][name].pop("const")
    return both


def enumerated(schema: Json) -> list[Any]:
    """The values that a schema enumerates."""
    return [schema["const"]] if "const" in schema else schema.get("enum", [])


def values_of(schema: Json) -> set[str] | None:
    """The values that a schema enumerates, as JSON and without null; None if it enumerates none."""
    if "const" not in schema and "enum" not in schema:
        return None
    return {json.dumps(value) for value in enumerated(schema) if value is not None}


def listed(values: Iterable[str]) -> str:
    """Values in a stable order, without quotation marks."""
    return ", ".join(sorted(value.strip('"') for value in values))


def required(schema: Json) -> set[str]:
    """The names of the required properties."""
    return set(schema.get("required", ()))


def without_texts(node: Any, *, is_named: bool = False) -> Any:
    """A document without what is only for people. `is_named`: the keys of `node` are names that the API chose."""
    if isinstance(node, list):
        return [without_texts(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        name: without_texts(value, is_named=name in ("paths", "properties", "schemas", "responses", "parameters"))
        for name, value in node.items()
        if is_named or name not in TEXTS
    }


def store_release(version: str) -> None:
    """Store the snapshot of the API document as the one of a release."""
    snapshot = json.loads((HERE / "openapi.json").read_text("utf-8"))
    document = {name: snapshot[name] for name in ("openapi", "info", "paths", "components")}
    text = json.dumps(without_texts(document), separators=(",", ":"), sort_keys=True)
    (HERE / "released" / f"{version}.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    store_release(sys.argv[1])
