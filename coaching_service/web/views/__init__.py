"""The pages of the web application, one module for each part; those of clients are in `train`."""

from coaching_service.web.pages import Page
from coaching_service.web.views import (
    assistants,
    attention,
    bulk,
    check_ins,
    customer_calendar,
    customer_details,
    customer_progress,
    customers,
    history,
    library,
    messages,
    programs,
    session_review,
    settings,
    sign_in,
    train,
    transfer,
)

MODULES = (
    sign_in,
    attention,
    customers,
    bulk,
    customer_calendar,
    session_review,
    customer_progress,
    customer_details,
    messages,
    check_ins,
    programs,
    library,
    assistants,
    history,
    transfer,
    settings,
    *train.MODULES,
)


def list_pages() -> list[Page]:
    """Return every page in the order of its declaration."""
    return [page for module in MODULES for page in module.pages.declared]
