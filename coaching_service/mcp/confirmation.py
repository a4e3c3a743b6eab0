"""How a coach is asked to confirm a call: by the client (elicitation), or by the assistant, which repeats the call."""

from __future__ import annotations

from typing import Any

from mcp.types import CallToolRequestParams, ElicitResult

from coaching_service.mcp.execution import Unconfirmed
from coaching_service.mcp.store import LIFETIME

Result = dict[str, Any]

_QUESTION = "confirm"
_REFUSAL = "That confirmation is not valid: it was used, has expired, or something has changed since."
_MINUTES = round(LIFETIME.total_seconds() / 60)


def ask(proposal: Unconfirmed) -> Result:
    """Return the result with which the client asks its user, and then repeats the request with the answer."""
    schema = {"type": "object", "properties": {}}
    params = {"mode": "form", "message": f"{_describe(proposal)} Do you agree?", "requestedSchema": schema}
    return {
        "resultType": "input_required",
        "inputRequests": {_QUESTION: {"method": "elicitation/create", "params": params}},
        "requestState": proposal.token,
    }


def is_accepted(params: CallToolRequestParams) -> bool:
    """Return whether the user has agreed to what `ask` has asked."""
    response = (params.input_responses or {}).get(_QUESTION)
    return isinstance(response, ElicitResult) and response.action == "accept"


def propose(proposal: Unconfirmed) -> Result:
    """Return the result that tells an assistant what the call would do, with the token that confirms it."""
    advice = f"Ask the coach. If they agree, repeat the call within {_MINUTES} minutes with the same arguments and"
    hint = f"{_REFUSAL} {advice}" if proposal.token_refused else advice
    return text_result(f"{_describe(proposal)} {advice} confirmationToken {proposal.token}") | {
        "structuredContent": {
            "executed": False,
            "summary": proposal.line,
            "reasons": [reason.name for reason in proposal.reasons],
            "confirmationToken": proposal.token,
            "hint": f"{hint} confirmationToken.",
        }
    }


def _describe(proposal: Unconfirmed) -> str:
    reasons = " and ".join(proposal.reasons)
    sentences = [
        *([_REFUSAL] if proposal.token_refused else []),
        "Nothing is done yet. After confirmation:",
        proposal.line,
        f"It has to be confirmed, because {reasons}.",
    ]
    return " ".join(sentences)


def text_result(text: str) -> Result:
    """Return a tool result as sent: the SDK validates it, so building its model here would only cost time."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": False}
