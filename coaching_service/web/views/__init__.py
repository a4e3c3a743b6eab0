"""The pages of the application, a module for each part of it."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    assistants,
    bulk,
    colleagues,
    consent,
    customer,
    customers,
    details,
    entry,
    home,
    keys,
    library,
    progress,
    records,
    settings,
    workout,
)

PARTS = (
    entry,
    home,
    customers,
    bulk,
    customer,
    workout,
    progress,
    records,
    details,
    library,
    keys,
    colleagues,
    assistants,
    settings,
    consent,
)


def everything() -> list[Page]:
    """Every page, in the order of declaration."""
    return [page for part in PARTS for page in part.pages.declared]
