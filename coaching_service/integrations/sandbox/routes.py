"""Sandboxes over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import owner_session, sandbox_key
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.jobs.unsent_mail import SandboxMail
from coaching_service.core.pagination import CursorPage, PartQuery
from coaching_service.integrations.sandbox import service
from coaching_service.integrations.sandbox.models import Sandbox

routes = Routes("/coach/sandbox", tag="Sandbox")


@routes.post("", access=owner_session(), request_class="bulk")
async def create_sandbox(ctx: Context) -> Sandbox:
    """Create a sandbox.

    A company of its own for tests, filled with sample data like the demo company, and a key to it. An earlier one is
    replaced: its key fails at once, and its data is erased. No user can sign in to a sandbox, and its mail is stored
    instead of sent. It is erased with the account.
    """
    return await service.create(ctx)


@routes.get("/mail", access=sandbox_key())
async def list_sandbox_mail(ctx: Context, query: PartQuery) -> CursorPage[SandboxMail]:
    """List the mails that a sandbox would have sent, newest first.

    Only with a key of the sandbox: other companies send their mail. They are removed after 30 days.
    """
    return await service.list_mail(ctx, limit=query["limit"], after=query["after"])
