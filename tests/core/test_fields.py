"""A field is declared once: the schemas of requests and responses, checks and labels follow from a TypedDict."""

from __future__ import annotations

from datetime import datetime
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import pytest
from marshmallow import ValidationError, fields

from coaching_service.core import fields as core_fields
from coaching_service.core.database.declared import Stored
from coaching_service.core.fields import Default, Label, Part, argument_of, input_of, output_of, private_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import DateRange, Period, QueryTime
from coaching_service.core.validation import Choice, Date, DateTime, Integer, ListOf, StringList, Text, patch_of
from coaching_service.lifecycle.consistency import mismatches
from coaching_service.people.sessions.models import SignUp


class Plan(TypedDict):
    """What is planned."""

    name: Annotated[str, Text(), Label("Title")]
    level: Annotated[
        int | None,
        Integer(minimum=1, maximum=5),
        core_fields.Description("How hard.", request="How hard it is.", argument="From 1 to 5."),
    ]
    isRest: Annotated[bool, Default(False)]
    kind: Literal["a", "b"]
    tags: Annotated[list[str], StringList(), Default(list)]
    until: NotRequired[Annotated[str | None, Date()]]


class Log(TypedDict):
    """What is done."""

    comment: NotRequired[Annotated[str | None, Text(max_length=20, allow_blank=True), core_fields.Optional]]


class Step(TypedDict):
    """A part of it."""

    stepId: ObjectId


class Record(Plan, Log, Stored):
    """A plan with its log."""

    steps: list[Step]
    secret: Annotated[str, core_fields.Private]


SENT = {"name": " Legs ", "kind": "a"}


def test_a_request_has_the_limits_defaults_and_nulls_of_the_declaration() -> None:
    schema = input_of(Plan)()
    loaded = schema.load(SENT)
    assert loaded == {"name": "Legs", "level": None, "isRest": False, "kind": "a", "tags": []}
    assert schema.load(SENT | {"level": 5, "until": None, "tags": ["x", "x"]})["tags"] == ["x"]
    for wrong in ({"level": 6}, {"level": True}, {"kind": "c"}, {"until": "20260302"}, {"isRest": None}, {"name": " "}):
        with pytest.raises(ValidationError) as refused:
            schema.load(SENT | wrong)
        assert list(refused.value.messages) == list(wrong)
    with pytest.raises(ValidationError) as refused:
        schema.load({})
    assert set(refused.value.messages) == {"name", "kind"}
    assert (type(schema).__name__, type(schema).__doc__) == ("Plan", "What is planned.")


def test_lists_with_defaults_are_not_shared_between_requests() -> None:
    first, second = (input_of(Plan)().load(SENT) for _ in range(2))
    assert first["tags"] is not second["tags"]


def test_a_patch_has_the_same_fields_and_no_defaults() -> None:
    assert patch_of(input_of(Plan), name="PlanChange").load({"version": 3, "level": None}) == {
        "version": 3,
        "level": None,
    }


def test_a_request_can_have_the_fields_and_checks_of_a_schema() -> None:
    class Days(Period):
        """Days."""

        isVisible: bool

    schema = input_of(Days, DateRange)()
    assert list(schema.fields) == ["startDate", "endDate", "isVisible"]
    with pytest.raises(ValidationError):
        schema.load({"startDate": "2026-03-03", "endDate": "2026-03-02", "isVisible": True})


def test_private_fields_are_those_with_the_annotation() -> None:
    assert set(private_of(Record)) == {"companyId", "secret"}
    assert private_of(Plan) == ()


def test_a_response_has_the_stored_fields_without_private_ones_and_limits() -> None:
    shown = output_of(Record)().fields
    assert list(shown) == [
        *("_id", "name", "level", "isRest", "kind", "tags", "until", "comment", "steps"),
        *("createdAt", "updatedAt", "version"),
    ]
    assert {name for name, field in shown.items() if not field.required} == {"comment"}
    assert {name for name, field in shown.items() if field.allow_none} == {"level", "until", "comment"}
    assert shown["level"].metadata == {"description": "How hard."}
    assert type(shown["name"]) is fields.String and type(shown["level"]) is fields.Integer
    tags: Any = shown["tags"]
    assert type(tags) is fields.List and type(tags.inner) is fields.String


def test_requests_and_arguments_have_descriptions_of_their_own() -> None:
    assert input_of(Plan)().fields["level"].metadata["description"] == "How hard it is."
    argument = argument_of(Plan, "level")
    assert (argument.metadata["description"], argument.load_default) == ("From 1 to 5.", None)
    assert input_of(Plan)().fields["level"].metadata["description"] == "How hard it is."


def test_an_argument_that_may_be_absent_is_null_and_an_empty_text_is_absent() -> None:
    arguments = core_fields.arguments_of(Plan, Log)
    assert list(arguments) == ["name", "level", "isRest", "kind", "tags", "until", "comment"]
    assert [name for name, field in arguments.items() if field.required] == ["name", "kind"]
    comment: Any = arguments["comment"]
    assert (comment.load_default, comment.allow_none, comment.allow_blank) == (None, True, False)


def test_an_argument_may_be_absent_although_requests_require_its_field() -> None:
    argument = argument_of(Plan, "name", may_be_absent=True, unlisted=True)
    assert (argument.required, argument.load_default, argument.metadata["unlisted"]) == (False, None, True)
    assert input_of(Plan)().fields["name"].required


def test_fields_that_older_documents_lack_are_null() -> None:
    assert core_fields.nulls_of(Record) == {"until": None, "comment": None}


def test_a_group_lists_its_fields_and_is_taken_from_a_document() -> None:
    assert core_fields.names_of(Plan, Log) == ("name", "level", "isRest", "kind", "tags", "until", "comment")
    assert take(Log, {"name": "Legs", "comment": "Good"}) == {"comment": "Good"}
    assert take(Log, {"name": "Legs"}) == {}


def test_imports_and_descriptions_of_changes_read_the_declaration() -> None:
    assert set(core_fields.checks_of(Record)) == {"name", "level", "tags", "until", "comment"}
    assert core_fields.labels_of(Record) == {"name": "Title"}
    wrong = mismatches(Record, {"name": 3, "kind": "a", "steps": [{}]}, "")
    assert {"name is not a text", "level is missing", "steps.stepId is missing"} <= set(wrong)


@pytest.mark.parametrize(
    ("part", "names", "required"),
    [
        (core_fields.Partial[Log], {"comment"}, set[str]()),  # type: ignore[misc]  # the plugin replaces them in annotations
        (core_fields.Change[Log], {"comment", "version"}, set[str]()),  # type: ignore[misc]  # the plugin replaces them in annotations
        (Part[Record, Literal["_id", "name"]], {"_id", "name"}, {"_id", "name"}),  # type: ignore[misc]  # as above
    ],
)
def test_parts_of_a_type_are_declared_by_it(part: Any, names: set[str], required: set[str]) -> None:
    declared = core_fields.declarations_of(part)
    assert set(declared) == names
    assert {each.name for each in declared.values() if each.is_required} == required


class PlanQuery(TypedDict):
    """Which plans."""

    level: Annotated[int, Default(1)]
    kinds: Annotated[list[Literal["a", "b"]], Default(list)]
    isRest: NotRequired[bool]
    since: datetime | None


def test_a_query_is_read_from_texts() -> None:
    schema = core_fields.query_of(PlanQuery)()
    assert schema.load({}) == {"level": 1, "kinds": [], "since": None}
    sent = {"level": "1e0", "kinds": ["a"], "isRest": "true", "since": "2026-03-02T08:30:00Z"}
    assert schema.load(sent) == {
        "level": 1,
        "kinds": ["a"],
        "isRest": True,
        "since": datetime.fromisoformat("2026-03-02T08:30:00"),
    }


class Steps(TypedDict):
    """Steps in a request that names its schema, and a time that requests read in a way of their own."""

    step: Annotated[Step, fields.Nested(input_of(Step, name="StepInput", description="A step to add."))]
    at: Annotated[datetime | None, QueryTime()]
    names: Annotated[list[str], ListOf(Choice("a", "b")), fields.List(fields.String())]


def test_a_response_has_schemas_of_its_own_for_parts_and_times() -> None:
    sent, shown = input_of(Steps)().fields, output_of(Steps)().fields
    assert isinstance(sent["step"], fields.Nested) and isinstance(shown["step"], fields.Nested)
    names = [type(field.schema).__name__ for field in (sent["step"], shown["step"])]
    assert names == ["StepInput", "Step"]
    assert type(sent["step"].schema).__doc__ == "A step to add."
    assert type(shown["at"]) is DateTime and shown["at"].allow_none
    assert isinstance(shown["names"], fields.List) and type(shown["names"].inner) is fields.String
    assert output_of(output_of(Steps)) is output_of(Steps)


# The module that declares SignUp has another `passwords`, with stricter rules.
passwords = SimpleNamespace(NewPassword=Text)


class OwnSignUp(SignUp):
    """A sign-up that is declared here."""

    remark: str


def test_inherited_fields_are_read_with_the_names_of_their_module() -> None:
    sent = {"companyName": "Nova", "name": "Nova", "email": "nova@example.com", "password": "short", "remark": "-"}
    assert input_of(OwnSignUp)().validate(sent) == {"password": ["must be at least 12 characters long"]}
