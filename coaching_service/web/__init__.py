"""The web application for coaches: HTML pages over the same services as REST.

Modules of `views/` declare pages and forms (see pages.py), and templates render them. `mount` adds all pages to an
application. Each page with an access other than `public` redirects visitors without a sign-in session to the sign-in
page, and back afterwards. Each form requires its token and an origin of this service. Pages outside of /app, such as
the consent of the OAuth server, are declared the same way; `external_redirect` allows their forms to redirect to
another site.
"""

from coaching_service.web.application import mount

__all__ = ["mount"]
