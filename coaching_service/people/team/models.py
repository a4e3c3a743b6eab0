"""Coaches as they are sent, stored and returned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.auth.access import ALL_PERMISSIONS
from coaching_service.core.database.models import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.fields import Change, Default, Description, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Email, ListOf, Text, Version
from coaching_service.people.account.models import Account
from coaching_service.people.notification_settings import SomeSettings

# --- The field of requests with permissions ---------------------------------------------------------------------------


class Permissions(ListOf):
    """Permissions by name, without duplicates, sorted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Choice(*sorted(ALL_PERMISSIONS)), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return sorted(set(super()._deserialize(value, attr, data, **kwargs)))


CoachRole = Literal["OWNER", "EMPLOYEE"]
CustomersScope = Literal["all", "assigned"]
PERMISSIONS = (
    "`area.action`; areas: customers, exercises, programs, forms, metrics, nutrition; "
    "actions: view, create, edit, delete."
)


class CoachName(TypedDict):
    """Who a coach is."""

    name: Annotated[str, Text()]
    email: Annotated[str, Email()]


class CoachRights(TypedDict):
    """What a coach may do: an owner has all permissions, and the scope `all`."""

    permissions: Annotated[
        list[str], Permissions(), fields.List(fields.String()), Default(list), Description(PERMISSIONS)
    ]
    customersScope: Annotated[CustomersScope, Default("all")]


class _CoachRole(TypedDict):
    role: CoachRole


class _EmployeeRole(TypedDict):
    role: Literal["EMPLOYEE"]


class Coach(CoachName, _CoachRole, CoachRights, Stored):
    """A stored coach; `notifications` are absent until the coach changes them."""

    notifications: NotRequired[Annotated[SomeSettings, Private]]


class Employee(CoachName, _EmployeeRole, CoachRights, Stored):
    """An employee of the company."""


class CoachWithCompany(Coach):
    """A coach with the company's document."""

    company: Account


class NewEmployee(CoachName, CoachRights):
    """An employee to add."""


class EmployeePermissions(TypedDict):
    """The permissions of an employee, and the clients they apply to."""

    permissions: Annotated[list[str], Permissions(), Description(PERMISSIONS)]
    customersScope: NotRequired[CustomersScope]
    version: NotRequired[Annotated[int, Version()]]


EmployeeChange: TypeAlias = Change[NewEmployee]


# --- Domain events about coaches --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CoachRemoved(DomainEvent):
    """An employee was removed from the company."""

    coach_id: ObjectId


@dataclass(frozen=True)
class CoachNotificationsChanged(DomainEvent):
    """A coach has changed which notifications to get, how or when."""

    coach_id: ObjectId


@dataclass(frozen=True)
class SignInEmailChanged(DomainEvent):
    """An employee signs in by another e-mail address."""

    coach_id: ObjectId
