"""A client's own words in a log: only the client changes them.

Which texts of a log the client wrote is stored with it as `clientTexts`: `comment`, `pain`, and the text answers of a
form by the identifier of their question. A session in which a coach impersonates the client does not count as the
client.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from coaching_service.core.auth import Principal
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import BlockLog, LoggedBlock
from coaching_service.training.workouts.items.models import FormAnswer, ItemLog, WorkItem

COMMENT, PAIN = "comment", "pain"
_DESCRIPTIONS = {COMMENT: "comment", PAIN: "description of pain"}
_Text = str | float | list[str] | None
_Texts = Mapping[str, _Text]


def keep_item_texts(caller: Principal, item: WorkItem, log: ItemLog) -> ItemLog:
    """Return the log of an item with the client's own words preserved, and which texts the client wrote.

    What a coach's log leaves out, or has null for, is preserved. Raises Conflict if a coach's log has a different text.
    """
    stored = _texts_of(item, item, (item["answers"] or ()) if item["type"] == "FORM" else ())
    sent = _texts_of(item, log, log.get("answers", ()))
    texts, client_texts = _merge(caller, stored, item.get("clientTexts", ()), sent)
    comment, pain = (None if texts[name] is None else str(texts[name]) for name in (COMMENT, PAIN))
    merged: ItemLog = {**log, "comment": comment, "pain": pain, "clientTexts": client_texts}
    if "answers" in log:
        merged["answers"] = _merge_answers(log["answers"], texts, item)
    return merged


def keep_block_texts(caller: Principal, comment: str | None, client_texts: Collection[str], log: BlockLog) -> BlockLog:
    """Return the log of a session with the client's own words preserved, as `keep_item_texts` does.

    `comment` and `client_texts` are from the stored block.
    """
    texts, names = _merge(caller, {COMMENT: comment}, client_texts, {COMMENT: log["comment"]})
    merged = texts[COMMENT]
    return {**log, "comment": None if merged is None else str(merged), "clientTexts": names}


def mark_as_written_by_client(block: LoggedBlock) -> LoggedBlock:
    """Return a logged block with every text in its logs marked as the client's own words."""
    logs: list[ItemLog | None] = []
    for item, log in zip(block["plan"]["items"], block["logs"], strict=True):
        texts = {} if log is None else _texts_of(cast("WorkItem", item), log, log.get("answers", ()))
        logs.append(log and {**log, "clientTexts": [name for name, text in texts.items() if text]})
    return {**block, "logs": logs, "clientTexts": [COMMENT] if block["comment"] else []}


def _texts_of(item: WorkItem, log: WorkItem | ItemLog, answers: Sequence[FormAnswer]) -> _Texts:
    """Return the texts of a log, or of an item that was logged, by name; null for missing ones."""
    texts: dict[str, _Text] = {COMMENT: log["comment"], PAIN: log.get("pain")}
    if item["type"] == "FORM":
        values = {answer["questionId"]: answer["value"] for answer in answers}
        text_ids = [question["_id"] for question in item["form"]["questions"] if question["type"] == "text"]
        texts |= {str(question_id): values.get(question_id) for question_id in text_ids}
    return texts


def _merge(caller: Principal, stored: _Texts, client_texts: Collection[str], sent: _Texts) -> tuple[_Texts, list[str]]:
    """Return the texts to store, and the names of texts by the client."""
    if not caller.is_coach and caller.impersonated_by is None:
        # A text of a coach that the client's application sends back unchanged stays the coach's.
        return sent, [name for name, text in sent.items() if text and (text != stored[name] or name in client_texts)]
    protected = [name for name in stored if name in client_texts]
    for name in protected:
        if sent[name] and sent[name] != stored[name]:
            what = _DESCRIPTIONS.get(name, "answer to a question")
            message = f"The client wrote this {what}: only the client can change it; leave it out to keep it"
            raise Conflict(message, code="CLIENT_TEXT")
    return {**sent, **{name: stored[name] for name in protected}}, protected


def _merge_answers(sent: Sequence[FormAnswer], texts: _Texts, item: WorkItem) -> list[FormAnswer]:
    """Return the answers with the texts to store; answers that were not sent are last."""
    merged: dict[ObjectId, _Text] = {}
    for question in item["form"]["questions"] if item["type"] == "FORM" else ():
        text = texts.get(str(question["_id"]))
        if text is not None:
            merged[question["_id"]] = text
    answers: list[FormAnswer] = [
        {**answer, "value": merged.pop(answer["questionId"], answer["value"])} for answer in sent
    ]
    added: list[FormAnswer] = [{"questionId": question_id, "value": text} for question_id, text in merged.items()]
    return [*answers, *added]
