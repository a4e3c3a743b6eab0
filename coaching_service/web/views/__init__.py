"""The pages of the web application, one module for each part; those of clients are in `train`."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    assistants,
    attention,
    audit_log,
    bulk,
    check_ins,
    customer_calendar,
    customer_details,
    customer_progress,
    customers,
    exercise_picker,
    find,
    form_checks,
    history,
    library,
    messages,
    open_id,
    programs,
    reports,
    security,
    session_review,
    settings,
    sign_in,
    train,
    transfer,
)

MODULES = (
    sign_in,
    open_id,
    attention,
    find,
    customers,
    bulk,
    customer_calendar,
    session_review,
    customer_progress,
    customer_details,
    messages,
    form_checks,
    check_ins,
    programs,
    exercise_picker,
    library,
    reports,
    assistants,
    history,
    transfer,
    settings,
    security,
    audit_log,
    *train.MODULES,
)


def list_pages() -> list[Page]:
    """Return every page in the order of its declaration."""
    return [page for module in MODULES for page in module.pages.declared]
