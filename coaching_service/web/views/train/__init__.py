"""The pages for clients, under /train: one module for each part."""

from coaching_service.web.views.train import (
    calendar,
    exercise,
    first_access,
    history,
    measurements,
    messages,
    photos,
    plans,
    progress,
    today,
    workout,
)

MODULES = (
    first_access,
    today,
    calendar,
    history,
    plans,
    progress,
    exercise,
    measurements,
    photos,
    messages,
    workout,
)
