"""Prompts that coaches choose in their application: instructions for recurring work with the tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp.types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

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


def list_prompts() -> list[Prompt]:
    """Return the prompts with their arguments."""
    return [
        Prompt(
            name=name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                PromptArgument(name=argument, description=about, required=argument not in prompt.defaults)
                for argument, about in prompt.arguments.items()
            ],
        )
        for name, prompt in _PROMPTS.items()
    ]


def fill_prompt(name: str, given: Mapping[str, str]) -> GetPromptResult:
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
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=prompt.description, messages=[message])
