"""The permissions of a coaching business: areas times actions, named `area.action` on the wire."""

from __future__ import annotations

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
