"""The one list of features: their routes, their background work, and the effects of one on another."""

from __future__ import annotations

from functools import partial

from coaching_service.core.changes import numbering
from coaching_service.core.changes import undo as change_undo
from coaching_service.core.database import files as database_files
from coaching_service.core.database.checks import Check
from coaching_service.core.http.routes import Routes
from coaching_service.core.jobs import mail, worker
from coaching_service.core.jobs.queue import Steps
from coaching_service.core.jobs.worker import job_checks
from coaching_service.core.mcp import Tools
from coaching_service.installation import indexes, server_versions
from coaching_service.integrations import (
    background_jobs,
    calendar_feed,
    company_export,
    load_unit,
    program_sheets,
    sandbox,
)
from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import importing, undoing
from coaching_service.integrations.history_import import tools as history_import
from coaching_service.integrations.proposals import service as proposals
from coaching_service.library import forms, message_templates, metric_sets
from coaching_service.library.exercises import routes as exercises
from coaching_service.library.exercises import tools as exercises_tools
from coaching_service.lifecycle import consistency, erasure, export, program_sync, reports, search
from coaching_service.lifecycle.customer_bulk import routes as customer_bulk
from coaching_service.lifecycle.customer_bulk import service as customer_bulk_jobs
from coaching_service.people import (
    account,
    api_keys,
    assistants,
    audit_log,
    availability,
    customer_access,
    files,
    own_profile,
    push,
    team,
)
from coaching_service.people.activity import service as activity
from coaching_service.people.changes import events as change_events
from coaching_service.people.changes import service as changes
from coaching_service.people.changes import tools as changes_tools
from coaching_service.people.customers import batch, counters, derived_figures, retention
from coaching_service.people.customers import routes as customers
from coaching_service.people.customers import tools as customers_tools
from coaching_service.people.notifications import PushQueue, Sources
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import routes as sessions
from coaching_service.people.webhooks import service as webhooks
from coaching_service.progress import (
    check_ins,
    compliance,
    customer_profile,
    exercise_history,
    form_checks,
    form_responses,
    notes,
    nutrition_plans,
    own_today,
    personal_records,
    progress_photos,
    reminders,
    workload,
)
from coaching_service.progress.attention import renewal
from coaching_service.progress.attention import service as attention
from coaching_service.progress.conversation import messages
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation import tools as conversation_tools
from coaching_service.progress.logs import routes as logs
from coaching_service.progress.logs import tools as logs_tools
from coaching_service.progress.metrics import routes as metrics
from coaching_service.training import (
    group_programs,
    own_schedule,
    programs,
    resuming,
    templates,
    training_maxes,
    visibility,
)
from coaching_service.training.assignments import service as assignments
from coaching_service.training.assignments import tools as assignments_tools
from coaching_service.training.schedule import program_tools
from coaching_service.training.schedule import routes as schedule
from coaching_service.training.workout_text import finding as finding_tools
from coaching_service.training.workout_text import tools as workouts_tools
from coaching_service.training.workouts import shared_routes as workout_routes
from coaching_service.training.workouts.blocks import batches

ROUTES: tuple[Routes, ...] = (
    sessions.routes,
    sessions.team_routes,
    own_profile.user_routes,
    account.routes,
    api_keys.routes,
    audit_log.routes,
    audit_log.own_routes,
    assistants.routes,
    assistants.application_routes,
    proposals.routes,
    team.routes,
    customers.routes,
    customer_profile.routes,
    customer_access.routes,
    availability.routes,
    availability.own_routes,
    customer_bulk.routes,
    program_sync.routes,
    search.routes,
    reports.routes,
    group_programs.routes,
    group_programs.group_routes,
    workout_routes.routes,
    schedule.routes,
    resuming.routes,
    logs.routes,
    logs.upsert_routes,
    logs.own_routes,
    own_schedule.own_routes,
    own_today.own_routes,
    own_profile.routes,
    push.key_routes,
    push.routes,
    push.own_routes,
    company_import.own_routes,
    visibility.routes,
    training_maxes.routes,
    exercises.routes,
    programs.routes,
    programs.block_routes,
    schedule.library_routes,
    schedule.program_routes,
    assignments.program_routes,
    assignments.routes,
    templates.routes,
    forms.routes,
    metric_sets.routes,
    metrics.routes,
    metrics.own_routes,
    metrics.value_routes,
    form_responses.routes,
    form_responses.inbox_routes,
    form_responses.own_routes,
    form_responses.request_routes,
    check_ins.routes,
    notes.routes,
    conversation.routes,
    message_templates.routes,
    conversation.inbox_routes,
    conversation.own_routes,
    form_checks.routes,
    form_checks.inbox_routes,
    form_checks.own_routes,
    activity.routes,
    activity.company_routes,
    changes_tools.routes,
    webhooks.routes,
    exercise_history.routes,
    exercise_history.own_routes,
    personal_records.routes,
    personal_records.own_routes,
    workload.volume_routes,
    workload.routes,
    compliance.routes,
    compliance.company_routes,
    attention.routes,
    progress_photos.routes,
    progress_photos.own_routes,
    nutrition_plans.routes,
    nutrition_plans.own_routes,
    files.routes,
    calendar_feed.routes,
    calendar_feed.feed_routes,
    export.routes,
    export.own_routes,
    company_export.routes,
    company_import.routes,
    load_unit.routes,
    program_sheets.routes,
    background_jobs.routes,
    history_import.routes,
    sandbox.routes,
)

TOOLS: tuple[Tools, ...] = (
    customers_tools.tools,
    batch.tools,
    customer_profile.tools,
    workouts_tools.tools,
    finding_tools.tools,
    logs_tools.tools,
    history_import.tools,
    assignments_tools.schedule_tools,
    resuming.tools,
    workouts_tools.training_max_tools,
    exercises_tools.tools,
    program_tools.tools,
    assignments_tools.tools,
    metrics.tools,
    compliance.tools,
    exercise_history.tools,
    workload.tools,
    activity.tools,
    form_responses.tools,
    check_ins.tools,
    notes.tools,
    conversation_tools.tools,
    attention.tools,
    changes_tools.tools,
    proposals.tools,
)
# What only the views of applications call.
VIEW_TOOLS: tuple[Tools, ...] = (proposals.view_tools,)

# What is sent to webhooks, by type of event: for the API document.
WEBHOOKS = change_events.describe_webhooks

TAGS = (
    ("Sessions", "Sign up, sign in, renew and end a session; forgotten passwords."),
    ("Account", "The caller and their company."),
    ("API keys", "Secrets with which a backend acts as a coach."),
    ("Audit log", "Who did what, and who has read the data of which client."),
    ("Assistants", "Assistants that coaches have connected over OAuth."),
    ("Applications", "Applications that coaches have allowed over OAuth, for REST."),
    ("Proposals", "What assistants propose, and a coach approves or rejects."),
    ("Team", "The employees of the company and their permissions."),
    ("Customers", "The clients of the company."),
    ("Client access", "Invitations, first access, passwords and impersonation of clients."),
    ("Availability", "When clients cannot train as planned: away, injured, ill, or limited."),
    ("Bulk", "One change to many clients; inspect `failed` even when the status is 200."),
    ("Workouts", "Workout blocks on a client's calendar, and their items."),
    ("Schedule", "One operation on many days of a client's calendar or of a program."),
    ("Logs", "What clients did in their workouts."),
    ("The client's own", "What clients read and log in a session of their own."),
    ("Visibility", "The days of the calendar that a client can see."),
    ("Training maximums", "The loads to which percentages in a client's plan refer."),
    ("Exercises", "The shared exercise library and the company's own exercises."),
    ("Programs", "Training programs, and their assignment to clients."),
    ("Program workouts", "The workout blocks of a program, and their items."),
    ("Workout templates", "Workouts to apply to any client's calendar."),
    ("Forms", "The questions that the company asks its clients."),
    ("Metric sets", "The metrics that the company measures, and their units."),
    ("Metrics", "The metric sets assigned to a client, and the recorded values."),
    ("Form responses", "The answers of clients to forms."),
    ("Check-ins", "Forms, metric sets and tasks that are scheduled for a client repeatedly."),
    ("Notes", "Notes of coaches about a client."),
    ("Messages", "The conversation of a client with the coaches, and comments on workouts."),
    ("Form checks", "Videos and pictures of sets, and the comments on them."),
    ("Activity", "The activity feed of a client, newest first."),
    ("Changes", "What was changed, by whom and through which interface; undo; events for other systems."),
    ("Webhooks", "The events of the company, sent to its own systems."),
    ("Exercise history", "The sessions of one exercise, newest first."),
    ("Personal records", "The personal records of a client: entered by hand, or from logs."),
    ("Volume", "Training volume by muscle group."),
    ("Search", "Clients, and what was written by and about them, by words."),
    ("Reports", "The business by week or month: clients, adherence, answers and load."),
    ("Workload", "Training load by day, week or month."),
    ("Progress photos", "Photos of a client from the front, back and side, by date."),
    ("Nutrition plans", "The versions of a client's nutrition plan."),
    ("Files", "The files that the `...Url` fields link to."),
    ("Calendar feed", "A client's workouts in calendar applications."),
    ("Export", "All data of a client, or of the company, in one ZIP file; and what reads it."),
    ("Sandbox", "A company for tests, with sample data; its mail is not sent."),
    ("Notifications", "The devices on which coaches and clients receive notifications (Web Push)."),
    ("Compliance", "How much of the scheduled training clients have completed."),
    ("Attention", "Which clients need a coach, and why."),
)

_STEPS: Steps = {
    mail.SEND: mail.send,
    credentials.RESET_REQUESTED: credentials.send_password_reset,
    erasure.ERASE_CUSTOMER: erasure.erase_customer,
    derived_figures.UNASSIGN: derived_figures.repeat_unassignment,
    counters.COUNT_GROUPS: derived_figures.count_groups,
    retention.FIND: retention.queue_due,
    retention.ERASE: retention.run_step,
    account.ERASE: erasure.erase_company,
    erasure.STORE: erasure.store_step,
    conversation.EARLIER_JOB: conversation.make_earlier_job_due,
    conversation.DELIVER: conversation.deliver_waiting,
    messages.DISCARD_ATTACHMENT: messages.discard_unsent_attachment,
    renewal.FIND_DUE: renewal.queue_due,
    renewal.RENEW_CHANGED: partial(renewal.renew_next, lane="changes"),
    renewal.RENEW_DAILY: partial(renewal.renew_next, lane="daily"),
    renewal.MARK_ALL_DUE: renewal.mark_all_due,
    personal_records.RENEW: personal_records.renew_batch,
    search.INDEX: search.index_batch,
    check_ins.SCHEDULE: check_ins.schedule_batch,
    consistency.COLLECT: consistency.collect_step,
    background_jobs.DISCARD: company_import.discard_checked_step,
    change_undo.REMOVE_OLD_PATCHES: change_undo.remove_old_patches,
    company_import.IMPORT: company_import.run_step,
    background_jobs.FOLLOW: importing.run_step,
    undoing.UNDO: undoing.run_step,
    load_unit.CONVERT: load_unit.run_step,
    customer_bulk_jobs.STEP: customer_bulk_jobs.run_step,
    changes.STEP: changes.run_step,
    push.SEND: push.send,
    proposals.EXPIRE: proposals.expire_step,
    proposals.CLOSE_STALE: proposals.close_stale_step,
}
# Jobs of suspended companies pause, but for erasure: who has deleted data must not wait for it.
ERASURES = (erasure.ERASE_CUSTOMER, account.ERASE)
# Figures of suspended companies are postponed by the jobs that renew them.
_UNPAUSED = (*ERASURES, *renewal.KINDS.values())
STEPS = account.pausing(_STEPS, unpaused=_UNPAUSED, while_converting=(load_unit.CONVERT, mail.SEND))
# What writes the notifications of each kind when they are due.
NOTIFICATIONS: Sources = {
    "messages": form_checks.write_message,
    "proposals": proposals.write_message,
    "reminders": reminders.write_reminder,
    "workouts": reminders.write_workout,
    "checkIns": reminders.write_check_ins,
    "digest": renewal.write_digest,
}
# What queues notifications on devices.
queue_push: PushQueue = push.enqueue
# How many jobs of a kind one process runs at the same time, if not one.
JOB_PLACES = {
    mail.SEND: mail.CONNECTIONS,
    push.SEND: push.CONNECTIONS,
    renewal.RENEW_CHANGED: 2,
}
# Jobs that are repeated indefinitely, of which the queue always has one, and the metric of how far they are behind.
STANDING_JOBS = {
    renewal.FIND_DUE: "figures_oldest_due_seconds",
    check_ins.SCHEDULE: "check_ins_oldest_due_seconds",
    consistency.COLLECT: "jobs_oldest_pending_seconds",
    change_undo.REMOVE_OLD_PATCHES: "jobs_oldest_pending_seconds",
    erasure.STORE: "jobs_oldest_pending_seconds",
    retention.FIND: "jobs_oldest_pending_seconds",
}
# What `coaching-service doctor` checks, in this order.
CHECKS: tuple[Check, ...] = (
    *indexes.CHECKS,
    *consistency.DOCUMENT_CHECKS,
    *account.CHECKS,
    *consistency.FILE_CHECKS,
    *database_files.CHECKS,
    *counters.CHECKS,
    *batches.CHECKS,
    *nutrition_plans.CHECKS,
    *messages.CHECKS,
    *numbering.CHECKS,
    *job_checks(STEPS),
    *worker.CHECKS,
    *company_import.CHECKS,
    *consistency.SECRET_CHECKS,
    *push.CHECKS,
    *search.CHECKS,
    *server_versions.CHECKS,
)
