"""The pages of the web application, one module for each part; those that only clients have are in `train`."""

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
    reports,
    session_review,
    settings,
    sign_in,
    transfer,
)
from coaching_service.web.views.train import calendar, progress, workout

MODULES = (
    *(sign_in, attention, customers, bulk, customer_calendar, session_review, customer_progress, customer_details),
    *(messages, check_ins, programs, library, reports, assistants, history, transfer, settings),
    *(calendar, progress, workout),
)


def list_pages() -> list[Page]:
    """Return every page in the order of its declaration."""
    return [page for module in MODULES for page in module.pages.declared]
