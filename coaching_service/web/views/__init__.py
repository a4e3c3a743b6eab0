"""The pages of the application, a module for each part of it."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    assistants,
    bulk,
    calendar,
    colleagues,
    consent,
    customer,
    customers,
    details,
    entry,
    exercise,
    files,
    home,
    keys,
    library,
    metric_sets,
    program,
    progress,
    records,
    settings,
    you,
)

PARTS = (
    entry,
    home,
    customers,
    bulk,
    customer,
    calendar,
    progress,
    files,
    records,
    details,
    library,
    exercise,
    program,
    keys,
    colleagues,
    metric_sets,
    assistants,
    settings,
    you,
    consent,
)


def everything() -> list[Page]:
    """Every page, in the order of declaration."""
    return [page for part in PARTS for page in part.pages.declared]
