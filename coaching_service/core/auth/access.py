"""Access rules: declared with each route, page and tool, and checked before the request is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from coaching_service.core.auth.principal import Principal
from coaching_service.core.errors import Forbidden, LoadsConverting, PermissionMissing, Unauthorized
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class Access:
    """The access rule of one operation.

    `audience`: `public` (credentials are ignored), `anyone` (any valid credential), `coach` or `customer`.
    `permissions`: all of these are required of a coach; `any_permission`: at least one of these, and the service
    requires the one for its subject. `session_only`: API keys are rejected. `owner_only`: employees are rejected.
    `sandbox_only`: only keys of a sandbox are accepted. `while_converting`: also while loads are being converted.
    """

    audience: Literal["public", "anyone", "coach", "customer"]
    permissions: tuple[str, ...] = ()
    session_only: bool = False
    owner_only: bool = False
    any_permission: tuple[str, ...] = ()
    sandbox_only: bool = False
    while_converting: bool = False

    def __str__(self) -> str:
        words = [
            "owner" if self.owner_only else self.audience,
            *self.permissions,
            " or ".join(self.any_permission),
            "session only" if self.session_only else "",
            "key of a sandbox" if self.sandbox_only else "",
        ]
        return ", ".join(word for word in words if word)


def public() -> Access:
    """Return the access that needs no credential; one that is sent is ignored."""
    return Access("public")


def anyone() -> Access:
    """Any valid credential, a client's session included."""
    return Access("anyone")


def any_session() -> Access:
    """Any session, a coach's or a client's."""
    return Access("anyone", session_only=True)


def coach(*permissions: str) -> Access:
    """Return a coach with these permissions, by session or API key."""
    return Access("coach", permissions)


def coach_with_any(*permissions: str) -> Access:
    """Return the access of a coach with at least one of these permissions; the service requires the right one."""
    return Access("coach", any_permission=permissions)


def session_only(*permissions: str) -> Access:
    """Return a coach's interactive session; API keys are rejected (contract 2)."""
    return Access("coach", permissions, session_only=True)


def owner() -> Access:
    """Return the company's owner, by session or unrestricted key."""
    return Access("coach", owner_only=True)


def sandbox_key() -> Access:
    """Return the unrestricted key of a sandbox."""
    return Access("coach", owner_only=True, sandbox_only=True)


def owner_session() -> Access:
    """Return the company's owner in an interactive session."""
    return Access("coach", session_only=True, owner_only=True)


def customer() -> Access:
    """Return a client's own session."""
    return Access("customer")


def even_while_converting(access: Access) -> Access:
    """Return the same access, also while the company's loads are being converted to another unit."""
    return replace(access, while_converting=True)


def check_access(access: Access, principal: Principal | None, *, writes: bool) -> None:
    """Raise Unauthorized or Forbidden unless `principal` has access, LoadsConverting if it has to wait.

    `writes`: the operation changes something.
    """
    if access.audience == "public":
        return
    if principal is None:
        raise Unauthorized()
    if (error := find_denial(access, principal, writes=writes)) is not None:
        raise error
    require_no_conversion(access, principal)


def require_no_conversion(access: Access, principal: Principal) -> None:
    """Raise LoadsConverting while the loads of the caller's company are being converted, if the operation must wait."""
    if principal.company.is_converting and not access.while_converting:
        raise LoadsConverting()


def find_denial(access: Access, principal: Principal, *, writes: bool) -> Forbidden | None:
    """Return the error with which this principal may not call the operation, or None if it may."""
    if access.session_only and principal.via != "session":
        return Forbidden("This operation needs an interactive session; API keys are refused", code="SESSION_REQUIRED")
    if access.audience == "coach" and not principal.is_coach:
        return Forbidden("This operation is for coaches", code="CLIENT_SESSION")
    if access.audience == "customer" and principal.is_coach:
        return Forbidden("This operation is for a client's own session", code="CLIENT_SESSION")
    if access.owner_only and (principal.role != "OWNER" or principal.restricted):
        return Forbidden("This operation is for the company's owner, without restrictions", code="OWNER_ONLY")
    if access.sandbox_only and not (principal.company.is_sandbox and principal.via == "apiKey"):
        return Forbidden("This operation needs the key of a sandbox", code="SANDBOX")
    if principal.read_only and writes:
        subject = "API key" if principal.via == "apiKey" else "access"
        return Forbidden(f"This {subject} is read-only", code="KEY_READ_ONLY")
    missing = [permission for permission in access.permissions if permission not in principal.permissions]
    if access.any_permission and not principal.permissions.intersection(access.any_permission):
        missing += access.any_permission
    return PermissionMissing(missing[0]) if missing else None


def require_permission(principal: Principal, permission: str) -> None:
    """Raise Forbidden unless `principal` has the permission."""
    if permission not in principal.permissions:
        raise PermissionMissing(permission)


# --- The permissions of a coaching business: areas times actions, named `area.action` on the wire ---------------------


ACTIONS = ("view", "create", "edit", "delete")


class Area:
    """One area of the business; its four permissions are `CUSTOMERS.VIEW` ("customers.view") and so on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.VIEW, self.CREATE, self.EDIT, self.DELETE = (f"{name}.{action}" for action in ACTIONS)


CUSTOMERS = Area("customers")
EXERCISES = Area("exercises")
PROGRAMS = Area("programs")
FORMS = Area("forms")
METRICS = Area("metrics")
NUTRITION = Area("nutrition")

AREAS = (CUSTOMERS, EXERCISES, PROGRAMS, FORMS, METRICS, NUTRITION)
ALL_PERMISSIONS = frozenset(f"{area.name}.{action}" for area in AREAS for action in ACTIONS)
READ_PERMISSIONS = frozenset(area.VIEW for area in AREAS)


# --- What a caller may see now: clients, areas and days ---------------------------------------------------------------
# Lists, feeds, events, changes, workouts, tools, pages and exports ask `Visibility.allows`, and nothing else.


@dataclass(frozen=True, slots=True)
class Visibility:
    """What the caller of one request may see.

    `customer_ids`: the clients in scope; None: all of the company. `permissions`: a coach's; None: a client, who
    sees all areas of their own data. `hidden_days`: the days that are hidden from a client, as `YYYY-MM-DD`.
    """

    permissions: frozenset[str] | None
    customer_ids: frozenset[ObjectId] | None = None
    hidden_days: frozenset[str] = frozenset()

    def allows(self, *, customer_id: ObjectId | None = None, area: Area | None = None, day: str | None = None) -> bool:
        """Return whether the caller may see what concerns this client, belongs to this area and is of this day.

        Each is left out where a thing has none.
        """
        if customer_id is not None and self.customer_ids is not None and customer_id not in self.customer_ids:
            return False
        if area is not None and self.permissions is not None and area.VIEW not in self.permissions:
            return False
        return day not in self.hidden_days


def areas_of(principal: Principal) -> Visibility:
    """Return what the principal may see of a client, and a day, that have been checked: only areas are left to ask."""
    return Visibility(principal.permissions if principal.is_coach else None)
