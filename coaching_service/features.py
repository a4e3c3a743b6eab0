"""The one list of features: their routes, their background work, and what one sets off in another."""

from __future__ import annotations

from coaching_service.kernel.background.jobs import Steps
from coaching_service.kernel.rest.routes import Routes
from coaching_service.library.exercises import routes as exercises
from coaching_service.library.forms import routes as forms
from coaching_service.library.metric_sets import routes as metric_sets
from coaching_service.lifecycle.erasure import service as erasure
from coaching_service.people.account import routes as account
from coaching_service.people.customers import routes as customers
from coaching_service.people.customers import service as customers_service
from coaching_service.training.programs import routes as programs
from coaching_service.training.workouts import routes as workouts

ROUTES: tuple[Routes, ...] = (
    account.routes,
    customers.routes,
    workouts.routes,
    exercises.routes,
    programs.routes,
    programs.block_routes,
    forms.routes,
    metric_sets.routes,
)

TAGS = (
    ("Account", "Who is asking."),
    ("Customers", "Clients of the company."),
    ("Workouts", "Workout blocks on a client's calendar, and the items in them."),
    ("Exercises", "The shared exercise library and the company's own exercises."),
    ("Programs", "Workout blocks by day, to be put onto clients' calendars."),
    ("Program workouts", "The blocks of a program, and the items in them."),
    ("Forms", "Questions the company asks its clients."),
    ("Metric sets", "What the company measures, and in which units."),
)

STEPS: Steps = {customers_service.ERASE: erasure.erase_customer}
