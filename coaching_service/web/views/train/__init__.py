"""The pages for clients, under /train: one module for each part."""

from coaching_service.web.views.train import (
    calendar,
    check_ins,
    declining,
    devices,
    exercise,
    first_access,
    history,
    measurements,
    messages,
    photos,
    plans,
    progress,
    reset_password,
    settings,
    today,
    workout,
)

MODULES = (
    declining,
    first_access,
    reset_password,
    today,
    calendar,
    history,
    plans,
    progress,
    exercise,
    measurements,
    photos,
    check_ins,
    messages,
    settings,
    devices,
    workout,
)
