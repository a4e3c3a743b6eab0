"""Which features react to which domain events: the one place where publishers and subscribers are both known."""

from __future__ import annotations

from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.changes.undo import DocumentsRestored, RestorationPlanned
from coaching_service.core.events import EventBus
from coaching_service.core.idempotency import ResponseReplayed
from coaching_service.integrations import background_jobs, load_unit
from coaching_service.integrations.history_import import undoing
from coaching_service.integrations.proposals import service as proposals
from coaching_service.library.exercises.models import LoadTypeChanged
from coaching_service.lifecycle import erasure
from coaching_service.oauth import clients as oauth_clients
from coaching_service.people import api_keys, assistants, audit_log, availability, customer_access, push, team
from coaching_service.people.account import CompanyDeleted, CompanyResumed, FigureSettingsChanged, LoadUnitChanged
from coaching_service.people.assistants import ApplicationAllowed
from coaching_service.people.availability import AvailabilityChanged
from coaching_service.people.changes.service import ImportUndoRequested
from coaching_service.people.customers import derived_figures, retention
from coaching_service.people.customers.models import CustomersCreated, CustomersDeleted, GroupsChanged
from coaching_service.people.identities.models import EmailConfirmed, IdentityDisplaced
from coaching_service.people.searched_texts import update_entries
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.models import SessionsEnded
from coaching_service.people.team import CoachNotificationsChanged, CoachRemoved, SignInEmailChanged
from coaching_service.people.webhooks import service as webhooks
from coaching_service.progress import check_ins, compliance, form_responses, personal_records
from coaching_service.progress.attention import renewal
from coaching_service.progress.attention import service as attention
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import MessageCreated, MessagesRead, MessagesRecalled
from coaching_service.progress.logs.service import ItemLogged
from coaching_service.progress.metrics import service as metrics
from coaching_service.training import group_programs
from coaching_service.training.assignments import service as assignments
from coaching_service.training.body_weights import BodyWeightsChanged
from coaching_service.training.programs import ProgramDeleted
from coaching_service.training.workouts.blocks.batches import record_written_workouts, update_restored_workouts
from coaching_service.training.workouts.blocks.models import (
    CompletedWorkChanged,
    RecordedItemsRescheduled,
    ScheduleChanged,
    ScheduleShifted,
)


def assemble() -> EventBus:
    """Return an event bus with every subscriber; subscribers of one event are called in the order given here."""
    events = EventBus()
    events.subscribe(ResponseReplayed, derived_figures.require_customer_in_scope)
    events.subscribe(
        CustomersCreated,
        customer_access.invite_new_customers,
        metrics.assign_automatic_sets,
        group_programs.enrol_new_customers,
    )
    events.subscribe(GroupsChanged, group_programs.assign_programs_of_groups)
    events.subscribe(ProgramDeleted, group_programs.forget_program)
    events.subscribe(
        CustomersDeleted,
        erasure.record_clients,
        erasure.queue_erasure,
        conversation.delete_conversations,
        proposals.forget_responses,
        background_jobs.forget_clients,
    )
    events.subscribe(CompanyDeleted, erasure.record_company, oauth_clients.end_access_of_applications)
    events.subscribe(
        CoachRemoved,
        sessions.end_sessions_of_coach,
        credentials.remove_of_removed_coach,
        credentials.unlink_account_of_coach,
        api_keys.delete_keys_of_coach,
        assistants.revoke_grants_of_coach,
        derived_figures.unassign_customers_of_coach,
    )
    events.subscribe(ApplicationAllowed, webhooks.join_company)
    events.subscribe(CoachNotificationsChanged, renewal.make_next_digest_due)
    events.subscribe(SignInEmailChanged, sessions.end_sessions_of_coach, credentials.unlink_account_of_coach)
    events.subscribe(IdentityDisplaced, sessions.end_displaced_sessions)
    events.subscribe(SessionsEnded, push.end_with_sessions)
    events.subscribe(EmailConfirmed, team.release_mail_of_confirmed_owner)
    events.subscribe(CompletedWorkChanged, personal_records.update_records, compliance.mark_figures_due)
    events.subscribe(RecordedItemsRescheduled, metrics.move_values, form_responses.move_responses)
    events.subscribe(ScheduleChanged, compliance.mark_figures_due)
    events.subscribe(ScheduleShifted, assignments.record_shift)
    events.subscribe(AvailabilityChanged, check_ins.reschedule_check_ins)
    events.subscribe(BodyWeightsChanged, personal_records.renew_added_loads)
    events.subscribe(LoadTypeChanged, personal_records.queue_renewal)
    events.subscribe(LoadUnitChanged, load_unit.require_no_loads, derived_figures.set_load_unit_of_all)
    events.subscribe(FigureSettingsChanged, renewal.queue_renewal_of_all)
    events.subscribe(
        CompanyResumed,
        webhooks.forget_failures,
        renewal.queue_renewal_of_all,
        check_ins.continue_postponed,
        retention.withdraw_announcement,
    )
    events.subscribe(
        DocumentsWritten,
        record_written_workouts,
        proposals.queue_stale,
        update_entries,
        audit_log.record_changed_clients,
    )
    events.subscribe(RestorationPlanned, conversation.require_unread, assignments.require_single_copies)
    events.subscribe(
        DocumentsRestored,
        update_restored_workouts,
        metrics.copy_restored_body_weights,
        derived_figures.count_restored_customers,
        attention.mark_restored_due,
        check_ins.unschedule_removed_check_ins,
        availability.publish_restored_periods,
        conversation.withdraw_undone_messages,
    )
    events.subscribe(ImportUndoRequested, undoing.begin_requested)
    events.subscribe(ItemLogged, compliance.mark_figures_due)
    events.subscribe(MessageCreated, conversation.make_due)
    events.subscribe(MessagesRead, conversation.withdraw_notifications)
    events.subscribe(MessagesRecalled, proposals.mark_recalled)
    return events
