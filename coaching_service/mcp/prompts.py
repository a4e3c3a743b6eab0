"""Prompts that coaches choose in their application: instructions for recurring work with the tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from mcp import types

from coaching_service.core.auth import new_token
from coaching_service.core.database.context import Context
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Reason, Tool
from coaching_service.integrations.proposals import service as proposals
from coaching_service.people.changes.service import name_kind

_MAX_LENGTH = 200


@dataclass(frozen=True)
class _Template:
    """A prompt: `text` with its arguments in braces; those without a default are required."""

    title: str
    description: str
    text: str
    arguments: Mapping[str, str]
    defaults: Mapping[str, str]


_CLIENT = "The client's name."
_PROMPTS = {
    "monday_review": _Template(
        "Monday review",
        "Who needs attention this week, and what the clients did last week.",
        "Review my clients for the week. Call get_attention for those who need something from me, get_compliance "
        "without a client for the last seven days, and get_activity without a client since last Monday. Then "
        "list: who did not train or fell behind, who reported pain or had a bad week, whose plan ends, which "
        "check-ins and messages wait for me, and good news. For each client one line with your suggestion. Change"
        " nothing before I have chosen.",
        {},
        {},
    ),
    "next_training_block": _Template(
        "Next training block",
        "Plan a client's next weeks from what they have done.",
        "Plan the next {weeks} weeks for {client}. Find them with list_customers, then read their last four weeks"
        " with get_workouts, their main lifts with get_exercise_history, get_training_load, and their notes with "
        "list_notes. Say what went well, what stalled and what hurts. Propose the block week by week, with sets "
        "and loads, and wait for my agreement. Then write it with copy_schedule and adjust_schedule where it "
        "repeats, and create_workout where it is new.",
        {"client": _CLIENT, "weeks": "How many weeks, by default 4."},
        {"weeks": "4"},
    ),
    "check_in_review": _Template(
        "Check-in review",
        "Go through the answered check-ins and draft replies.",
        "Review the check-ins of {client} that I have not reviewed. Read them with list_check_ins, compare the "
        "answers with the check-in before, with get_compliance and with the metrics in get_metric_history. For "
        "each, give me what has changed, what needs a decision, and a short draft of a reply in my tone. Send or "
        "change nothing before I agree; then use review_check_in and send_message.",
        {"client": "The client's name, by default all clients."},
        {"client": "all clients"},
    ),
}


def list_prompts() -> list[types.Prompt]:
    """Return the prompts with their arguments."""
    return [
        types.Prompt(
            name=name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                types.PromptArgument(name=argument, description=about, required=argument not in prompt.defaults)
                for argument, about in prompt.arguments.items()
            ],
        )
        for name, prompt in _PROMPTS.items()
    ]


def fill_prompt(name: str, given: Mapping[str, str]) -> types.GetPromptResult:
    """Return a prompt with its arguments filled in. Raises LookupError, ValueError with a sentence for the caller."""
    if (prompt := _PROMPTS.get(name)) is None:
        raise LookupError("Unknown prompt: prompts/list names the prompts there are")
    values = {argument: " ".join(given.get(argument, "").split())[:_MAX_LENGTH] for argument in prompt.arguments}
    filled = {argument: value or prompt.defaults.get(argument, "") for argument, value in values.items()}
    if missing := [argument for argument, value in filled.items() if not value]:
        raise ValueError(f"The prompt needs {', '.join(missing)}")
    text = prompt.text
    for argument, value in filled.items():
        text = text.replace(f"{{{argument}}}", value)
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])


# --- MCP Apps: views that applications which declare the extension show with the results of tools ---------------------
# What other applications receive does not depend on this module.


EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
# Nothing is loaded from anywhere: each view is one file.
_META: dict[str, Any] = {"ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}}
_FOLDER = Path(__file__).with_name("views")
_INCLUDED = re.compile(r"/\* ((?:view|host)\.(?:css|js)) \*/")
# An application of an earlier revision names its capabilities only when it connects; its session says that they include
# the extension. The server stores nothing about it.
_SESSION = "apps-"
_SHOWN_CHANGES = 30


@dataclass(frozen=True)
class _View:
    """A view: `reads` are the tools that read and whose results it shows."""

    title: str
    description: str
    reads: frozenset[str]


PROPOSAL = "proposal"
_VIEWS = {
    PROPOSAL: _View(
        "Proposal",
        "What an assistant proposes, before and after, with buttons to approve or reject it.",
        frozenset({"get_proposal"}),
    ),
    "week": _View("Workouts", "The workouts on a client's calendar by day.", frozenset({"get_workouts"})),
    "progress": _View(
        "Progress",
        "Charts of a client's lifts, metrics and training load.",
        frozenset({"get_exercise_history", "get_metric_history", "get_training_load"}),
    ),
}


def _uri(name: str) -> str:
    return f"ui://coaching/{name}"


def is_declared(capabilities: object) -> bool:
    """Return whether the capabilities of a client include views of the type that this service has."""
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    settings = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    return isinstance(settings, Mapping) and MIME_TYPE in settings.get("mimeTypes", [MIME_TYPE])


def new_session() -> str:
    """Return the identifier of the session of a client that has declared the extension when it connected."""
    return _SESSION + new_token()


def is_session(identifier: str | None) -> bool:
    """Return whether a session began with the extension."""
    return identifier is not None and identifier.startswith(_SESSION)


def meta_of(tool: Tool) -> dict[str, Any] | None:
    """Return what the list of tools says about the view of a tool, if it has one; any change may be a proposal."""
    if tool.for_views:
        return {"ui": {"resourceUri": _uri(PROPOSAL), "visibility": ["app"]}}
    shown = (name for name, view in _VIEWS.items() if tool.name in view.reads or (tool.writes and name == PROPOSAL))
    name = next(shown, None)
    return None if name is None else {"ui": {"resourceUri": _uri(name)}}


async def add_view_data(ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool with what only its view receives: of a pending proposal, how to decide on it."""
    data = result.get("structuredContent", {})
    if "proposalId" not in data or not (data.get("executed") is False or data.get("status") == "pending"):
        return result
    proposal = await proposals.find_own(ctx, ObjectId(data["proposalId"]))
    changes = [{**change, "kind": name_kind(change["kind"])} for change in proposal["changes"]]
    is_key = ctx.caller.via == "apiKey"  # its program could read the nonce, and decide itself
    meta = {
        **({} if is_key else {"nonce": proposals.nonce_of(ctx.services, proposal["_id"])}),
        "reasons": [Reason[name].value for name in proposal["reasons"]],
        "changes": orjson.loads(to_json(changes[:_SHOWN_CHANGES])),
        "hiddenChanges": max(0, len(changes) - _SHOWN_CHANGES),
    }
    return result | {"_meta": meta}


def list_views() -> list[types.Resource]:
    """Return the views as resources."""
    return [
        types.Resource(
            uri=_uri(name), name=name, title=view.title, description=view.description, mime_type=MIME_TYPE, _meta=_META
        )
        for name, view in _VIEWS.items()
    ]


def read_view(uri: str) -> types.TextResourceContents:
    """Return a view. Raises LookupError."""
    name = next((name for name in _VIEWS if _uri(name) == uri), None)
    if name is None:
        raise LookupError("Unknown resource: resources/list names the resources there are")
    return types.TextResourceContents(uri=uri, mime_type=MIME_TYPE, text=_load(name), _meta=_META)


@cache
def _load(name: str) -> str:
    """Return the file of a view, with the style and script that all views share in it."""
    page = (_FOLDER / f"{name}.html").read_text("utf-8")
    return _INCLUDED.sub(lambda found: (_FOLDER / found[1]).read_text("utf-8"), page)
