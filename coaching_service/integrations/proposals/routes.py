"""Proposals over REST: an interactive session only."""

from __future__ import annotations

from functools import partial

from coaching_service.core.auth import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.http.routes import Routes
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.integrations.proposals import models as proposal_models
from coaching_service.integrations.proposals import service

routes = Routes(
    "/coach/proposals", tag="Proposals", path_descriptions={"proposalId": "The identifier of the proposal."}
)


@routes.get("", access=session_only())
async def list_proposals(ctx: Context, query: proposal_models.ProposalQuery) -> CursorPage[proposal_models.Proposal]:
    """List proposals of assistants, newest first.

    Those on the caller's behalf; for the owner, all of the company. A proposal that concerns a client whom the caller
    does not work with is left out.
    """
    return await service.list_proposals(ctx, **query)


@routes.get("/{proposalId}", access=session_only(), errors=(NotFound,))
async def get_proposal(ctx: Context, proposal_id: ObjectId) -> proposal_models.Proposal:
    """Read a proposal of an assistant."""
    return await service.get(ctx, proposal_id)


_decision = partial(
    routes.post,
    access=session_only(),
    status=200,
    returns=proposal_models.Proposal,
    errors=(NotFound, Conflict),
    idempotent=True,
)


@_decision("/{proposalId}/approve", resumable=True)
async def approve_proposal(ctx: Context, proposal_id: ObjectId, claim: Claim | None) -> proposal_models.Proposal:
    """Approve a proposal: what it proposes is done, once.

    It is done with the rights that the assistant has now; if they do not suffice any more, the response is 403 and the
    proposal has failed. If what was shown has changed, nothing is done: `PROPOSAL_STALE`.
    """
    return await service.approve(ctx, proposal_id, claim, place="api")


@_decision("/{proposalId}/reject", body_optional=True, example={"note": "Not this week"})
async def reject_proposal(
    ctx: Context, proposal_id: ObjectId, body: proposal_models.Rejection
) -> proposal_models.Proposal:
    """Reject a proposal: nothing is done, and the same call is refused for 24 hours."""
    return await service.reject(ctx, proposal_id, body["note"], place="api")


@routes.post(
    "/reject",
    access=session_only(),
    status=200,
    idempotent=True,
    example={"ids": ["66f0c0ffee0000000000abcd"], "note": "Not this week"},
)
async def reject_proposals(ctx: Context, body: proposal_models.ManyRejections) -> proposal_models.Rejected:
    """Reject several proposals.

    Those with the given identifiers, or all that wait of an assistant or API key. What is decided already is left out.
    """
    rejected = await service.reject_many(ctx, body["ids"], body["assistantId"], body["note"], place="api")
    return {"rejected": rejected}
