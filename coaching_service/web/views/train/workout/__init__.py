"""The workout of a client: its sets and other items, swaps and skips, and finishing it."""

from coaching_service.web.views.train.workout import item_forms
from coaching_service.web.views.train.workout.page import pages

__all__ = ["item_forms", "pages"]
