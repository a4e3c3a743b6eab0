"""The pages for clients, under /train: one module for each part."""

from coaching_service.web.views.train import (
    calendar,
    first_access,
    history,
    messages,
    plans,
    today,
    workout,
)

MODULES = (
    first_access,
    today,
    calendar,
    history,
    plans,
    messages,
    workout,
)
