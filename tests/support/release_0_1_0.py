"""Documents as release 0.1.0 stored them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from coaching_service.core.ids import ObjectId

CREATED = datetime.fromisoformat("2026-11-21T12:00:00")


def customer_of_release_0_1_0(name: str) -> dict[str, Any]:
    """A client as release 0.1.0 stored it."""
    return {
        "_id": ObjectId(),
        "companyId": ObjectId(),
        "name": name,
        "surname": None,
        "email": f"{name.lower()}@example.com",
        "customerRoleData": {
            "isArchived": False,
            "groups": [],
            "assignedTo": None,
            "customerType": "REAL",
            "complianceRate7d": None,
            "complianceRate30d": None,
            "complianceRate90d": None,
            "complianceDate": None,
            "lastWorkoutDate": None,
            "firstLoginDate": None,
        },
        "createdAt": CREATED,
        "updatedAt": CREATED,
        "version": 3,
    }


def mail_of_release_0_1_0() -> dict[str, Any]:
    """Queued mail as release 0.1.0 stored it."""
    return {
        "_id": ObjectId(),
        "companyId": ObjectId(),
        "about": None,
        "kind": "send_mail",
        "arguments": {"to": "ana@example.com", "subject": "Welcome", "text": "token=secret-token", "tries": 0},
        "runAfter": CREATED,
        "attempts": 0,
        "lease": None,
        "createdAt": CREATED,
    }
