"""The OpenAPI document is read without loss by code generators, and every operation in it has a recorded example."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from coaching_service import features
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.documentation.openapi import response_examples
from tests.support.client import components_of, document

ROUTES = routes_of(features.ROUTES)
VERBS = (
    "adjust|apply|approve|archive|assign|bulk|cancel|clear|confirm|convert|copy|create|delete|dismiss|disconnect|"
    "download|end|export|get|impersonate|import|invite|list|log|mark|move|record|redeliver|refresh|reject|replace|"
    "request|resend|reset|resolve|resume|reveal|revoke|rotate|search|send|set|shift|sign|sync|unarchive|unassign|undo|update|"
    "upsert|"
    "upload|use"
)


def operation_of(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = document()["paths"][route.path][route.method.lower()]
    return operation


def resolved(node: dict[str, Any]) -> dict[str, Any]:
    """A node of the document, or the component that it refers to."""
    if "$ref" not in node:
        return node
    _, kind, name = str(node["$ref"]).removeprefix("#/").split("/")
    component: dict[str, Any] = document()["components"][kind][name]
    return component


def schemas_below(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document with its path, except examples."""
    if isinstance(node, list):
        for index, entry in enumerate(node):
            yield from schemas_below(entry, f"{path}/{index}")
    elif isinstance(node, dict):
        yield path, node
        for key, entry in node.items():
            if key not in ("example", "examples"):
                yield from schemas_below(entry, f"{path}/{key}")


def test_types_that_generators_make_have_names_of_their_own() -> None:
    """Parts without a name have a title: of the schema or operation and the field, and as no schema is called."""
    schemas = document()["components"]["schemas"]
    titles = [
        (path, node["title"]) for path, node in schemas_below(document()) if isinstance(node.get("title"), str) and path
    ]
    names = Counter(title for path, title in titles if "/info" not in path)
    assert [name for name, number in names.items() if number > 1 or name in schemas] == []
    assert [name for name in (*names, *schemas) if not re.fullmatch(r"[A-Z][A-Za-z0-9]*[A-Za-z]", name)] == []
    untitled = [
        path
        for path, node in schemas_below(document())
        if ("enum" in node or "properties" in node)
        and isinstance(node.get("type"), str)
        and "title" not in node
        and not re.fullmatch(
            r"/components/schemas/\w+|.*/content/[^/]+/[^/]+/schema|/components/(parameters|headers)/.*", path
        )
    ]
    assert untitled == []
    fields = {name.lower().replace("_", "") for schema in schemas.values() for name in schema.get("properties", {})}
    assert [name for name in names if name.lower() in fields] == [], "openapi-python-client confuses their modules"


def test_no_schema_has_a_default() -> None:
    """openapi-typescript treats a request property with a default as required."""
    assert [
        path for path, node in schemas_below(document()) if "default" in node and "properties" not in path[-12:]
    ] == []


def test_an_enum_has_no_limits_of_length_and_no_null() -> None:
    enums = [(path, node) for path, node in schemas_below(document()) if isinstance(node.get("enum"), list)]
    assert enums
    for path, node in enums:
        assert not {"minLength", "maxLength"} & node.keys(), path
        assert None not in node["enum"], path


def test_a_link_has_the_format_uri() -> None:
    formats = {node["format"] for _, node in schemas_below(document()) if isinstance(node.get("format"), str)}
    assert formats == {"binary", "date", "date-time", "idn-email", "uri", "uuid"}


def test_only_bulk_requests_refuse_unknown_fields() -> None:
    """Contract 1: unknown fields are ignored, except in bulk requests; a response may grow."""
    closed = {name for name, schema in document()["components"]["schemas"].items() if "additionalProperties" in schema}
    bulk = [route for route in ROUTES if route.path.startswith("/coach/customers/bulk/")]
    bodies = {type(route.body).__name__ for route in bulk}
    assert closed == bodies | {"CustomerFilter"}


def test_every_schema_and_property_has_a_description() -> None:
    for name, schema in document()["components"]["schemas"].items():
        assert schema["description"].endswith("."), name
        for field, attributes in schema.get("properties", {}).items():
            assert "$ref" in attributes or attributes.get("description", "").endswith("."), (name, field)


def test_every_parameter_has_a_description() -> None:
    for route in ROUTES:
        for parameter in operation_of(route)["parameters"]:
            assert resolved(parameter)["description"].endswith("."), (route.operation_id, parameter)


def test_operations_are_named_by_camel_case_verbs() -> None:
    names = [route.operation_id for route in ROUTES]
    assert [name for name in names if not re.fullmatch(rf"({VERBS})([A-Z][a-z]+)+", name)] == []


def test_every_operation_documents_the_errors_that_any_can_answer() -> None:
    for route in ROUTES:
        statuses = operation_of(route)["responses"].keys()
        has_body = route.body is not None or route.multipart is not None
        assert {"500", "503"} <= statuses, route.operation_id
        assert [each in statuses for each in ("408", "413", "415")] == [has_body] * 3, route.operation_id


def test_the_documented_legacy_failures_have_a_constant_code() -> None:
    """Contract 3: the four planned 500s."""
    codes: dict[str, set[str]] = {}
    for route in ROUTES:
        response = operation_of(route)["responses"]["500"]
        for option in response.get("content", {}).get("application/json", {}).get("schema", {}).get("anyOf", []):
            name = option["$ref"].rpartition("/")[2]
            if name.startswith("LegacyFailure"):
                code = document()["components"]["schemas"][name]["properties"]["code"]["const"]
                codes.setdefault(code, set()).add(route.operation_id)
    assert codes == {
        "PERSONAL_RECORD_ID_INVALID": {"getPersonalRecord", "updatePersonalRecord", "deletePersonalRecord"},
        "METRICS_SET_MISSING": {
            "assignMetricsSet",
            "unassignMetricsSet",
            "recordMetricValue",
            "listMetricHistory",
            "deleteMetricValue",
        },
        "WITEM_MOVE_INCOMPLETE": {"moveWorkoutItem", "moveProgramItem"},
        "NUTRITION_PLAN_FILE_MISSING": {"uploadNutritionPlan"},
    }


def test_what_every_operation_has_in_common_is_described_once() -> None:
    """Contract 14: limits, bytes and strictness."""
    components = document()["components"]
    assert components["parameters"]["Prefer"]["name"] == "Prefer"
    assert {"Preference-Applied", "RateLimit", "RateLimit-Policy", "Retry-After"} <= components["headers"].keys()
    for route in ROUTES:
        responses = operation_of(route)["responses"]
        assert ("429" in responses) or route.access.audience == "public", route.operation_id
        if "429" in responses:
            assert "Retry-After" in resolved(responses["429"])["headers"]
    conditional = {route.operation_id for route in ROUTES if "304" in operation_of(route)["responses"]}
    assert conditional == {"downloadFile", "getCalendar"}
    for route in (route for route in ROUTES if route.operation_id in conditional):
        operation = operation_of(route)
        assert "If-None-Match" in [resolved(parameter)["name"] for parameter in operation["parameters"]]
        assert "ETag" in resolved(operation["responses"]["304"])["headers"]
        assert "ETag" in operation["responses"]["200"]["headers"]


def test_details_of_single_operations() -> None:
    by_id = {route.operation_id: operation_of(route) for route in ROUTES}
    assert by_id["exportCustomer"]["responses"]["200"]["content"].keys() == {"application/zip"}
    assert "403" in by_id["signOut"]["responses"]
    assert by_id["setProfilePhoto"]["requestBody"]["required"] is False
    photo = by_id["replaceProgressPhoto"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert photo["required"] == ["imageFile", "imageSideIndex"]
    assert photo["properties"]["imageSideIndex"]["x-enum-varnames"] == ["Front", "Back", "Side"]
    assert "405" in by_id["getCustomer"]["responses"]
    assert "405" not in by_id["listCustomers"]["responses"]
    trainers = document()["components"]["schemas"]["CustomerFilter"]["properties"]["assignedTo"]["items"]
    jsonschema_rs.validate(trainers, "none")
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(trainers, "unassigned")


def test_every_json_response_has_an_example_that_its_schema_accepts() -> None:
    schemas = document()["components"]["schemas"]
    for route in ROUTES:
        content = operation_of(route)["responses"][str(route.status)].get("content", {}).get("application/json")
        if content is not None:
            needed = {name: schemas[name] for name in components_of(content["schema"])}
            schema = {**content["schema"], "components": {"schemas": needed}}
            validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
            assert list(validator.iter_errors(content["example"])) == [], route.operation_id


def test_examples_belong_to_operations() -> None:
    assert {name.removesuffix(" dryRun") for name in response_examples()} <= {route.operation_id for route in ROUTES}


def test_every_successful_json_response_has_an_example() -> None:
    """But what a dry run would create: its identifiers are null, and the schema is that of stored records."""
    missing = [
        (route.operation_id, status)
        for route in ROUTES
        for status, response in operation_of(route)["responses"].items()
        if status.startswith("2")
        and "example" not in response.get("content", {}).get("application/json", {"example": 1})
    ]
    dry = {(route.operation_id, "200") for route in ROUTES if route.takes_dry_run and route.status == 201}
    assert {*missing} <= dry
    assert ("createWorkoutBlock", "200") in missing
    assert '"_id": null' not in json.dumps(document())


def test_a_dry_run_has_the_type_of_the_operation() -> None:
    """Generated clients have one type for both: `_id` is a string, also where only a dry run could return null."""
    creating = [operation_of(route)["responses"] for route in ROUTES if route.takes_dry_run and route.status == 201]
    assert creating
    for responses in creating:
        schemas = [responses[status]["content"]["application/json"]["schema"] for status in ("200", "201")]
        assert schemas[0] == schemas[1]
    assert not [name for name in document()["components"]["schemas"] if name.endswith("Preview")]


def test_discriminators_are_required_fields() -> None:
    """A generator reads the discriminator before it knows the schema."""
    schemas = document()["components"]["schemas"]
    discriminators = list(find_discriminators(document()))
    assert discriminators
    for node in discriminators:
        for reference in node.get("oneOf", node.get("anyOf", ())):
            name = reference["$ref"].rpartition("/")[2]
            assert node["discriminator"]["propertyName"] in schemas[name].get("required", []), name


def find_discriminators(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if "discriminator" in node:
            yield node
        for child in node.values():
            yield from find_discriminators(child)
    elif isinstance(node, list):
        for child in node:
            yield from find_discriminators(child)


def test_no_default_is_stated_twice() -> None:
    text = json.dumps(document())
    assert not re.findall(r"Default: \S+ Default:", text)
    assert "isAmrap" in text


def test_summaries_are_words() -> None:
    """No name of a class is left in a summary by a replacement."""
    assert [route.summary for route in ROUTES if re.search(r"[a-z][A-Z]", re.sub(r"`\w+`", "", route.summary))] == []
    assert re.findall(r"cs_ak_\w{20,}", json.dumps(response_examples())) == []
