"""The page on which a coach reviews a logged session, and answers the client."""

from coaching_service.web.views.session_review.page import pages

__all__ = ["pages"]
