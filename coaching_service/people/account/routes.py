"""The authenticated caller and the company over REST."""

from __future__ import annotations

from coaching_service.core.auth import coach, owner, owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.errors import TooManyRequests
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.validation import patch_of
from coaching_service.people.account import service
from coaching_service.people.account.service import Account, AccountChange, AccountDetails, AccountErasure

routes = Routes("", tag="Account")


@routes.get("/coach/account", access=coach())
async def get_account(ctx: Context) -> Account:
    """Read the company."""
    return await service.get(ctx)


@routes.patch(
    "/coach/account",
    access=owner(),
    body=patch_of(input_of(AccountDetails), name="AccountChange"),
    example={"timezone": "Europe/Madrid"},
)
async def update_account(ctx: Context, body: AccountChange) -> Account:
    """Change the company.

    `loadUnit` is 409 while any load is stored; POST /coach/account/load-unit converts them. `requireSecondFactor` is
    409 `SECOND_FACTOR_MISSING` for an owner without one.
    """
    return await service.update(ctx, body)


@routes.delete(
    "/coach/account",
    request_class="unlimited",
    access=owner_session(),
    errors=(TooManyRequests,),
    example={"password": "correct horse battery staple"},
)
async def delete_account(ctx: Context, body: AccountErasure) -> None:
    """Erase the company.

    All its keys, sign-in sessions and passwords stop working at once; its data is then erased in the background.
    """
    await service.erase(ctx, body["password"])
