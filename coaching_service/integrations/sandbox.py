"""A sandbox: a company of its own for tests, filled like the demo company, to which no user can sign in."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core import audit
from coaching_service.core.auth import owner_session, sandbox_key
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.fields import Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail import SANDBOX_ORDER, SandboxMail, sandbox_mails
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery
from coaching_service.demo import create_assets, fill_company
from coaching_service.people import account, api_keys, team

# --- Sandboxes as they are returned -----------------------------------------------------------------------------------


class Sandbox(TypedDict):
    """A company for tests."""

    companyId: Annotated[ObjectId, Description("The sandbox, which is a company of its own.")]
    apiKey: Annotated[str, Description("A key of its owner; it begins with `cs_test_`.")]


# --- Sandboxes over REST ----------------------------------------------------------------------------------------------


routes = Routes("/coach/sandbox", tag="Sandbox")


@routes.post("", access=owner_session(), request_class="bulk")
async def create_sandbox(ctx: Context) -> Sandbox:
    """Create a sandbox.

    A company of its own for tests, filled with sample data like the demo company, and a key to it. An earlier one is
    replaced: its key fails at once, and its data is erased. No user can sign in to a sandbox, and its mail is stored
    instead of sent. It is erased with the account.
    """
    owner = ctx.caller
    # Without a caller, so that what the transaction changes belongs to the sandbox and not to the caller's company.
    without_caller = Context(ctx.services, request_id=ctx.request_id, operation=ctx.operation)
    assets = await create_assets(without_caller)

    async def fill(tx: Context) -> Sandbox:
        company_id = assets.company_id
        of_owner = tx.acting_as(owner)
        await account.delete_sandbox(of_owner)
        await account.set_sandbox(of_owner, company_id)
        name = f"Sandbox of {owner.company.name}"[:200]
        await audit.record(of_owner, "sandbox.created", company_id)
        tester = await team.create_company(
            tx, name, owner.name, owner.email or "", None, company_id=company_id, sandbox_of=owner.company.id
        )
        await fill_company(tx, tester, assets, lambda _: None)
        key = await api_keys.create(tx.acting_as(tester), "Sandbox", {"outreach": True})
        return {"companyId": company_id, "apiKey": key["key"]}

    return await in_transaction(without_caller, fill)


@routes.get("/mail", access=sandbox_key())
async def list_sandbox_mail(ctx: Context, query: PartQuery) -> CursorPage[SandboxMail]:
    """List the mails that a sandbox would have sent, newest first.

    Only with a key of the sandbox: other companies send their mail. They are removed after 30 days.
    """
    list_part = ListPart(ctx, "sandbox-mail", {}, SANDBOX_ORDER, size=query["limit"], after=query["after"])
    mails = await sandbox_mails.find(ctx, list_part.condition(), sort=SANDBOX_ORDER, limit=query["limit"] + 1)
    return list_part.by_cursor(mails, lambda entry: entry)
