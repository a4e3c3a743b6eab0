"""Items have `isPendingForm`: whether they are a form that is not answered. It is missing where it would be false."""

from __future__ import annotations

from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.context import Database


async def apply(db: Database, vault: Vault) -> None:
    """Mark the forms that are not answered."""
    del vault
    pending = {"type": "FORM", "isCompleted": False, "isPendingForm": {"$exists": False}}
    condition = {f"item.{name}": value for name, value in pending.items()}
    await db["workoutBlocks"].update_many(
        {"items": {"$elemMatch": pending}}, {"$set": {"items.$[item].isPendingForm": True}}, array_filters=[condition]
    )
