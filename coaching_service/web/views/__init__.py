"""The pages of the application, a module for each part of it."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    api_keys,
    assistants,
    bulk,
    calendar,
    consent,
    customer,
    customers,
    details,
    exercise,
    files,
    home,
    library,
    metric_sets,
    my_account,
    program,
    progress,
    records,
    settings,
    sign_in,
    team,
)

PARTS = (
    sign_in,
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
    api_keys,
    team,
    metric_sets,
    assistants,
    settings,
    my_account,
    consent,
)


def list_pages() -> list[Page]:
    """Every page, in the order of declaration."""
    return [page for part in PARTS for page in part.pages.declared]
