"""The pages for clients, under /train: one module for each part."""

from coaching_service.web.views.train import (
    calendar,
    check_ins,
    exercise,
    first_access,
    messages,
    own_schedule,
    photos,
    progress,
    settings,
    today,
    workout,
)

MODULES = (
    first_access,
    today,
    calendar,
    progress,
    exercise,
    photos,
    check_ins,
    messages,
    settings,
    own_schedule,
    workout,
)
