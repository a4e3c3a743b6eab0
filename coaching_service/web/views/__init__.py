"""The pages of the web application, one module for each part."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    api_keys,
    assistants,
    attention,
    bulk,
    consent,
    customer_calendar,
    customer_check_ins,
    customer_details,
    customer_files,
    customer_messages,
    customer_notes,
    customer_progress,
    customer_records,
    customer_workouts,
    customers,
    exercise_customization,
    exercises,
    history,
    home,
    inbox,
    metric_sets,
    my_account,
    program_workouts,
    programs,
    settings,
    sign_in,
    team,
    webhooks,
)

MODULES = (
    sign_in,
    home,
    attention,
    customers,
    bulk,
    customer_calendar,
    customer_workouts,
    customer_progress,
    customer_files,
    inbox,
    customer_messages,
    customer_check_ins,
    customer_notes,
    customer_records,
    customer_details,
    programs,
    exercises,
    exercise_customization,
    program_workouts,
    api_keys,
    team,
    metric_sets,
    assistants,
    webhooks,
    history,
    settings,
    my_account,
    consent,
)


def list_pages() -> list[Page]:
    """Return every page in the order of its declaration."""
    return [page for module in MODULES for page in module.pages.declared]
