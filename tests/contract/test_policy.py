"""The declarations agree with the policies written by hand: permissions and indexes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from coaching_service import features
from coaching_service.core.auth import Access, scopes_of
from coaching_service.core.database.context import Schedule
from coaching_service.core.database.declared import Index
from coaching_service.core.database.documents import registry
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.mcp import tools_of
from coaching_service.web import views
from coaching_service.web.views.customers import ACTIONS
from tests.support.client import CoachClient

HERE = Path(__file__).parent


def read_policy(name: str) -> list[str]:
    """The lines of a policy file, without comments and with single spaces, sorted."""
    lines = (HERE / name).read_text("utf-8").splitlines()
    return sorted(" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#"))


def assert_same(name: str, declared: Iterable[str]) -> None:
    """Fail with the lines that are missing from the policy (+) and those that nothing declares (-)."""
    diff = difflib.unified_diff(read_policy(name), sorted(declared), name, "the declarations", lineterm="", n=0)
    differences = [line for line in diff if not line.startswith("@@")]
    assert not differences, "\n".join([f"The declarations differ from tests/contract/{name}:", *differences])


def describe_access(access: Access) -> str:
    audience = "owner" if access.owner_only else access.audience
    kinds = [name for name, only in (("session", access.session_only), ("sandbox", access.sandbox_only)) if only]
    return " ".join([audience, *access.permissions, *filter(None, ["|".join(access.any_permission)]), *kinds])


def describe_index(collection: str, index: Index) -> str:
    options = ["unique"] if index.unique else []
    for field, condition in index.partial_filter:
        conditions = condition.items() if isinstance(condition, dict) else [("", condition)]
        options += [" ".join(f"partial {field} {operator} {value}".split()) for operator, value in conditions]
    if index.expire_after is not None:
        options.append(f"ttl {index.expire_after}")
    if index.ignore_case:
        options.append("ignore case")
    return ", ".join([f"{collection}: {' '.join(index.fields)}", *options])


def describe_scopes(route: Route) -> str:
    access = route.access
    is_refused = access.session_only or access.owner_only
    if is_refused or access.audience in ("public", "customer"):
        return "refused"
    return " ".join("|".join(each) for each in scopes_of(access, writes=route.writes)) or "any"


def test_applications_need_the_scopes_of_the_policy() -> None:
    routes = [each for each in routes_of(features.ROUTES) if each.access.audience not in ("public", "customer")]
    assert_same("scopes.txt", (f"{each.method} {each.path} {describe_scopes(each)}" for each in routes))


def test_every_change_locks_the_schedule_of_the_policy() -> None:
    """What it declares to lock it has an identifier of; and no change of what is in its path is without a lock."""
    changes: list[tuple[str, Schedule | None, str, set[str]]] = []
    for route in (each for each in routes_of(features.ROUTES) if each.writes):
        body = route.multipart.schema if route.multipart else route.body
        changes.append((f"{route.method} {route.path}", route.locks, route.path, set(getattr(body, "fields", ()))))
    forms = [page for page in views.list_pages() if page.method == "POST" and page.preview_of is None]
    changes += [
        (f"FORM {each.path}", each.locks, each.path, set(each.schema.fields if each.schema else ())) for each in forms
    ]
    changes += [(f"TOOL {each.name}", each.locks, "", set(each.takes.fields)) for each in tools_of(features.TOOLS)]
    assert_same("locks.txt", [f"{locks} {change}" for change, locks, _, _ in changes if locks])
    for change, locks, path, fields in changes:
        assert locks is None or f"{{{locks}Id}}" in path or f"{locks}Id" in fields, change
        assert locks or not re.search(r"{(customer|program|template)Id}", path), change
    assert not [tool.name for tool in tools_of(features.TOOLS) if tool.locks and not tool.writes]


def test_every_operation_requires_the_permission_of_the_policy() -> None:
    routes = [f"{route.method} {route.path} {describe_access(route.access)}" for route in routes_of(features.ROUTES)]
    kinds = {"GET": "PAGE", "POST": "FORM"}
    pages = [f"{kinds[page.method]} {page.path} {describe_access(page.access)}" for page in views.list_pages()]
    actions = [f"ACTION {name} coach {action.permission} {action.view_permission}" for name, action in ACTIONS.items()]
    tools = [
        f"TOOL {tool.name} {describe_access(tool.access)}" for tool in tools_of((*features.TOOLS, *features.VIEW_TOOLS))
    ]
    assert_same("policy.txt", routes + pages + actions + tools)


def test_a_route_that_changes_coaching_data_requires_more_than_view() -> None:
    for route in routes_of(features.ROUTES):
        permissions = (*route.access.permissions, *route.access.any_permission)
        if permissions and "webhooks" not in permissions:  # it has no actions
            only_view = all(permission.endswith(".view") for permission in permissions)
            assert only_view is not route.writes, f"{route.method} {route.path}"


def test_a_tool_that_writes_requires_more_than_view() -> None:
    for tool in tools_of(features.TOOLS):
        only_view = all(permission.endswith(".view") for permission in tool.access.permissions)
        assert not tool.access.permissions or only_view is not tool.writes, tool.name


def test_every_collection_has_the_indexes_of_the_policy() -> None:
    collections = registry
    declared = [describe_index(name, index) for name, each in collections.items() for index in each.indexes]
    assert_same("indexes.txt", declared)


@pytest.mark.parametrize("collection", sorted(registry))
async def test_the_database_has_the_declared_indexes(coach: CoachClient, collection: str) -> None:
    """Fields, uniqueness, partial filter, expiry and case as they are in the database, not only the name."""
    stored = await coach.ctx.db[collection].index_information()
    actual = [
        describe_index(
            collection,
            Index(
                tuple(f"{'-' if direction == -1 else ''}{field}" for field, direction in details["key"]),
                unique=details.get("unique", False),
                expire_after=details.get("expireAfterSeconds"),
                partial_filter=tuple(dict(details.get("partialFilterExpression", {})).items()),
                ignore_case="collation" in details,
            ),
        )
        for name, details in stored.items()
        if name != "_id_"
    ]
    assert sorted(actual) == [line for line in read_policy("indexes.txt") if line.startswith(f"{collection}:")]


def in_order(routes: list[Route]) -> list[Route]:
    """Protected routes: what is deleted comes last, inner resources before those that hold them.

    Upserts come after changes, whose examples have the first version.
    """
    called = [route for route in routes if route.access.audience != "public" and route.path != "/coach/account"]
    return sorted(
        called, key=lambda route: (deletes(route), route.upserts, -route.path.count("/") if deletes(route) else 0)
    )


def deletes(route: Route) -> bool:
    return route.method == "DELETE" or route.path.endswith("bulk/delete")
