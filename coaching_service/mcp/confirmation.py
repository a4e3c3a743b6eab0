"""How a coach is asked to confirm a call: by the client (elicitation), or by a proposal on a page of their own."""

from __future__ import annotations

from typing import Any

from mcp.types import CallToolRequestParams, ElicitResult

from coaching_service.core.database.context import Services
from coaching_service.core.http.responses import format_datetime
from coaching_service.core.mcp.arguments import format_time
from coaching_service.integrations.proposals import service as proposals
from coaching_service.integrations.proposals.models import Proposal
from coaching_service.integrations.proposals.tool_calls import TOKEN_LIFETIME, Unconfirmed

Result = dict[str, Any]

_QUESTION = "confirm"
_MINUTES = round(TOKEN_LIFETIME.total_seconds() / 60)
_REFUSAL = "That confirmation is not valid: it was used, has expired, or something has changed since."


def ask(unconfirmed: Unconfirmed, token: str) -> Result:
    """Return the result with which the client asks its user, and then repeats the request with the answer."""
    schema = {"type": "object", "properties": {}}
    message = f"{_describe(unconfirmed)} Do you agree?"
    return _input_required({"mode": "form", "message": message, "requestedSchema": schema}, token)


def ask_in_chat(unconfirmed: Unconfirmed, token: str) -> Result:
    """Return the result with which an assistant asks the coach in the chat, and then confirms the call itself."""
    advice = f"Ask the coach. If they agree, repeat the call within {_MINUTES} minutes with the same arguments and"
    hint = f"{_REFUSAL} {advice}" if unconfirmed.token_refused else advice
    return text_result(f"{_describe(unconfirmed)} {advice} confirmationToken {token}") | {
        "structuredContent": {
            "executed": False,
            "summary": unconfirmed.line,
            "reasons": [reason.name for reason in unconfirmed.reasons],
            "confirmationToken": token,
            "hint": f"{hint} confirmationToken.",
        }
    }


def ask_at_address(services: Services, unconfirmed: Unconfirmed, proposal: Proposal) -> Result:
    """Return the result with which the client asks its user to open the page of a proposal."""
    params = {
        "mode": "url",
        "message": f"{_describe(unconfirmed)} Decide on the page of the coaching service.",
        "url": proposals.url_of(services, proposal["_id"]),
    }
    return _input_required(params, str(proposal["_id"]))


def _input_required(params: dict[str, Any], state: str) -> Result:
    return {
        "resultType": "input_required",
        "inputRequests": {_QUESTION: {"method": "elicitation/create", "params": params}},
        "requestState": state,
    }


def is_accepted(params: CallToolRequestParams) -> bool:
    """Return whether the user has agreed to what `ask` or `ask_at_address` has asked."""
    response = (params.input_responses or {}).get(_QUESTION)
    return isinstance(response, ElicitResult) and response.action == "accept"


def propose(services: Services, unconfirmed: Unconfirmed, proposal: Proposal) -> Result:
    """Return the result that tells an assistant what is proposed to the coach, and where the coach decides."""
    url = proposals.url_of(services, proposal["_id"])
    advice = (
        f"Ask the coach to open {url} and to decide there until {format_time(proposal['expiresAt'])}; get_proposal "
        f"with proposalId {proposal['_id']} returns the result."
    )
    return text_result(f"{_describe(unconfirmed)} {advice}") | {
        "structuredContent": {
            "executed": False,
            "proposalId": str(proposal["_id"]),
            "approvalUrl": url,
            "summary": proposal["summary"],
            "reasons": proposal["reasons"],
            "expiresAt": format_datetime(proposal["expiresAt"]),
            "hint": advice,
        },
    }


def _describe(unconfirmed: Unconfirmed) -> str:
    reasons = " and ".join(unconfirmed.reasons)
    sentences = [
        *([_REFUSAL] if unconfirmed.token_refused else []),
        "Nothing is done yet. After confirmation:",
        unconfirmed.line,
        f"It has to be confirmed, because {reasons}.",
    ]
    return " ".join(sentences)


def text_result(text: str) -> Result:
    """Return a tool result as sent: the SDK validates it, so building its model here would only cost time."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}
