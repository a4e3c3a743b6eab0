"""The coach application: pages in plain HTML over the same domain services as REST.

A page is declared (see pages.py) in a module of `views/` that `views.PARTS` names; `serve.py` serves it, a template
draws it. `mount` puts all pages onto an application. What a declaration brings along: whoever is not signed in is led
to the sign-in page and from there back to the page asked for, query included; a coach without the permission reads so;
a form is only taken with its token, from a page of ours.

A page elsewhere than under /app is declared the same way. The one on which a coach lets an assistant in, say:

    pages = Pages("/oauth")

    @pages.get("/authorize", access=coach(), template="consent.html", external_redirect=True, with_request=True)
    async def consent_page(ctx, request):
        return {"client": await clients.asking(ctx, request.query)}     # or Redirect(address), or a response of its own

    @pages.post("/authorize", access=coach(), form=Consent(), on=consent_page, external_redirect=True)
    async def consent(ctx, form):
        return Redirect(await grants.let_in(ctx, form))                        # a redirect to the assistant's address

`external_redirect` leaves `form-action` out of the page's policy, since browsers hold redirects after a form to it.
"""

from coaching_service.web.application import mount

__all__ = ["mount"]
