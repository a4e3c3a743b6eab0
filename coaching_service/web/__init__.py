"""The coach web application: server-rendered HTML pages over the same services as REST.

Pages are declared in the modules of `views/` (see pages.py) and served by `WebApplication` in application.py; a Jinja
template renders each. Every page checks its declared access: without a session the browser is redirected to the sign-in
page and back, and a missing permission is an error page. Every form carries a CSRF token.
"""

from coaching_service.web.application import mount

__all__ = ["mount"]
