"""The pages of the application, a module for each part of it."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    api_keys,
    assistants,
    bulk,
    consent,
    customer_calendar,
    customer_details,
    customer_files,
    customer_notes,
    customer_progress,
    customer_records,
    customer_workouts,
    customers,
    exercise,
    home,
    library,
    metric_sets,
    my_account,
    program,
    settings,
    sign_in,
    team,
)

PARTS = (
    sign_in,
    home,
    customers,
    bulk,
    customer_calendar,
    customer_workouts,
    customer_progress,
    customer_files,
    customer_notes,
    customer_records,
    customer_details,
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
