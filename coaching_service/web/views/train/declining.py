"""Declining the invitations of a company, linked from each of them."""

from __future__ import annotations

from coaching_service.core.auth.access import public
from coaching_service.core.database.context import Context
from coaching_service.people.customer_access import declining
from coaching_service.people.customer_access.models import DeclineLink, DeclinePage
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/train/no-invitations")


@pages.get("", access=public(), query=DeclineLink, template="sign_in/no_invitations.html")
async def decline_page(ctx: Context, query: DeclineLink) -> DeclinePage:
    """The page to decline further invitations, with the name of the company."""
    return {"token": query["token"], "company": await declining.find_company_name(ctx.services, query["token"])}


@pages.post("", access=public(), form=DeclineLink, on=decline_page)
async def decline(ctx: Context, form: DeclineLink) -> Redirect:
    """Stop further invitations of the company to this e-mail address."""
    await declining.decline(ctx, form["token"])
    return Redirect("/train/no-invitations", "You will receive no more invitations from them.")
