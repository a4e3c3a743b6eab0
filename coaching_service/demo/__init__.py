"""The demo company: sample data that shows every feature, the same after every seeding on the same day."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.demo.assets import create_assets
from coaching_service.demo.company import EMAIL, fill
from coaching_service.people import api_keys, team
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password

_KEY_NAME = "Demo"
Progress = Callable[[str], None]


async def ensure_demo(services: Services, progress: Progress = lambda _: None) -> dict[str, str]:
    """Create the demo company if it is missing; returns `baseUrl, apiKey, companyId, email, password`.

    It is created in one transaction, so that an interrupted start leaves no part of it. The password is derived from
    the master key and the key is stored encrypted, so that later starts return the same. `progress` is called with the
    name of each step.
    """
    ctx = Context(services, operation="addSampleData")
    password = services.vault.derive_text("demo password")
    owner = await _owner(ctx)
    if owner is None:
        password_hash = await hash_password(password)
        progress("drawings")
        assets = await create_assets(ctx)
        owner = await in_transaction(ctx, lambda tx: fill(tx, password_hash, assets, progress))
    ctx = ctx.acting_as(owner)
    secret = await api_keys.find_secret(ctx, _KEY_NAME)
    if secret is None:
        secret = (await api_keys.create(ctx, _KEY_NAME, {"outreach": True}))["key"]
    return {
        "baseUrl": services.base_url,
        "apiKey": secret,
        "companyId": str(owner.company.id),
        "email": EMAIL,
        "password": password,
    }


async def _owner(ctx: Context) -> Principal | None:
    identity = await identities.find_by_email(ctx.services, EMAIL)
    return None if identity is None else await team.get_principal(ctx.services, identity.subject_id)


def write_atomically(file: Path, content: dict[str, str]) -> None:
    """Write `content` as JSON to `file`, readable by its owner alone; a reader never sees half of it."""
    draft = file.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(json.dumps(content, indent=2) + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(file)
