"""Media of sets and comments on them as they are asked for, sent and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.database.declared import Returned
from coaching_service.core.database.recording import Actor
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.fields import Change, Default, Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.query import FormInteger
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.progress.conversation.models import MessageAuthor, MessageField
from coaching_service.training import set_media

MAX_MARKS = 20


class NewMedia(TypedDict):
    """The set that a file shows; without these fields it shows the item as a whole."""

    exerciseId: NotRequired[Annotated[ObjectId, Description("An exercise of the item, or the one done instead.")]]
    round: NotRequired[Annotated[int, FormInteger(maximum=1_000), Description("In a circuit: the round, from 1.")]]
    index: NotRequired[Annotated[int, FormInteger(maximum=1_000), Description("The number of the set, from 1.")]]
    questionId: NotRequired[Annotated[ObjectId, Description("The question of type `photo` that a picture answers.")]]


class NewMediaComment(TypedDict):
    """A comment on a video or picture, with what is drawn on it."""

    text: Annotated[str, MessageField(), Description("Plain text.")]
    at: Annotated[
        float | None,
        validation.Number(minimum=0, maximum=set_media.LONGEST_VIDEO),
        Description("The time of the video in seconds; null for the whole video, and always on a picture."),
    ]
    marks: Annotated[
        list[set_media.MediaMark],
        validation.ListOf(fields.Nested(input_of(set_media.MediaMark, name="MediaMarkInput")), maximum=MAX_MARKS),
        fields.List(fields.Nested(output_of(set_media.MediaMark))),
        Default(list),
        Description(
            "What is drawn: two points of a line, an arrow (the second is its head) and a circle (its centre, and a "
            "point on it), three of an angle (the second is its vertex); at most 20. Default: none."
        ),
    ]


CommentChange: TypeAlias = Change[NewMediaComment]


class MediaComment(set_media.StoredComment):
    """A comment on a video or picture."""

    author: Annotated[Actor, fields.Nested(MessageAuthor)]
    version: Annotated[int, Description("The version of the video or picture.")]


class SetMedia(set_media.MediaSet, Returned):
    """A video or picture of an item."""

    questionId: Annotated[ObjectId | None, Description("The question of a form that it answers; null for others.")]
    question: Annotated[str | None, Description("The text of this question at the time; null without one.")]
    kind: Annotated[set_media.MediaKind, Description("What kind of file it is.")]
    url: Annotated[str, fields.Url(), Description("A signed link to the file, valid for two hours.")]
    posterUrl: Annotated[
        str | None,
        fields.Url(),
        Description("A signed link to a small picture of it; null for a video that was sent without one."),
    ]
    name: Annotated[str, Description("The name of the file.")]
    contentType: str
    size: Annotated[int, Description("Its size in bytes.")]
    author: Annotated[Actor, fields.Nested(MessageAuthor)]
    reviewedAt: Annotated[datetime | None, Description("When a coach reviewed it; null until then.")]
    reviewedBy: Annotated[ObjectId | None, Description("The coach who reviewed it.")]
    comments: Annotated[list[MediaComment], Description("The comments on it, oldest first.")]


class ShownWorkout(TypedDict):
    """The workout that the item of a video or picture is in."""

    name: str
    date: Annotated[str, validation.Date()]
    item: Annotated[str, Description("The exercise, or another name of the item.")]


class ReceivedMedia(SetMedia):
    """A video or picture of an item with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]
    wblockId: Annotated[ObjectId, Description("The workout that the item is in, or was in before it was removed.")]
    witemId: Annotated[ObjectId, Description("The item.")]
    workout: Annotated[ShownWorkout | None, Description("The workout and item; null if the item was removed.")]


MEDIA = output_of(SetMedia, first=("_id", "kind", "url", "posterUrl", "name", "size", "createdAt"))
RECEIVED = output_of(ReceivedMedia, MEDIA)


class ReceivedQuery(PartQuery):
    """Filters of what clients have sent; they combine with AND."""

    reviewed: NotRequired[Annotated[bool, Description("`true`: only reviewed ones; `false`: only the others.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only of this client.")]]


class MediaReview(TypedDict):
    """Whether a video or picture is reviewed."""

    reviewed: Annotated[bool, Description("`false` takes the mark away.")]
