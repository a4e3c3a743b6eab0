"""Coaches as they are sent, stored and returned."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Change, Default, Description, Private
from coaching_service.core.validation import Email, Text, Version
from coaching_service.people.account.models import Account
from coaching_service.people.notification_settings.models import SomeSettings
from coaching_service.people.team.schemas import Permissions

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
