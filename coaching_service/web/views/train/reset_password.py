"""Choosing a new password, linked from the e-mail to a client who forgot it."""

from __future__ import annotations

from coaching_service.web.pages import Pages
from coaching_service.web.views.sign_in import declare_password_reset

pages = Pages("/train/reset-password")
declare_password_reset(pages, "", "/app/sign-in?next=/train")
