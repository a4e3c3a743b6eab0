"""Names of exercises in files that are imported, as they are stored and returned."""

from __future__ import annotations

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from coaching_service.core.database.field_changes import Stored
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, Text
from coaching_service.library.exercises.name_models import ExerciseMatch

NewOrSkipped = Literal["create", "skip"]
CREATE: NewOrSkipped = "create"
SKIP: NewOrSkipped = "skip"
# What becomes of a name: an exercise, a new exercise with this name, or nothing.
NameAnswer: TypeAlias = ObjectId | NewOrSkipped


class ImportedName(Stored):
    """What a company has answered about a name in files; `exerciseId` is None if its sets are left out.

    `name` is normalized.
    """

    name: Annotated[str, Text(max_length=NAME_LENGTH)]
    exerciseId: ObjectId | None


class NameInFile(TypedDict):
    """A name of an exercise in a file, and what it means."""

    name: Annotated[str, Description("The name as the file has it.")]
    sets: Annotated[int, Description("How many sets, or rows of a plan, have this name.")]
    match: Annotated[
        ExerciseMatch | None,
        Description(
            "The exercise that the name means: the one answered for it now or in an earlier import, else the one that "
            "is meant for sure; null without one."
        ),
    ]
    alternatives: Annotated[list[ExerciseMatch], Description("Up to three other exercises, the best first.")]
    answer: Annotated[
        NewOrSkipped | None,
        Description(
            "`create` if an exercise with this name is created, `skip` if what has this name is left out; null with a "
            "match, and without the permission to create exercises."
        ),
    ]


@dataclass(frozen=True)
class ResolvedNames:
    """What the names of a file mean.

    `names`: for the result of the import, the most frequent first. `decisions` are by the normalized name, and so are
    `spellings`, the names as the file first has them; None: an exercise that the caller may not create. `answered` are
    the decisions that the caller has sent now.
    """

    names: list[NameInFile]
    decisions: Mapping[str, NameAnswer | None]
    spellings: Mapping[str, str]
    answered: frozenset[str]

    @property
    def new_names(self) -> list[str]:
        """The names for which exercises have to be created, as the file has them."""
        return [self.spellings[key] for key, decision in self.decisions.items() if decision == CREATE]

    def without_new(self) -> ResolvedNames:
        """Return what the names mean for a caller who may not create exercises: some mean nothing."""
        new = {key for key, decision in self.decisions.items() if decision == CREATE}
        return self._with_answer(new, None)

    def for_use(self, keys: Container[str]) -> ResolvedNames:
        """Return what the names mean if only some, by the normalized name, are used: no exercise for another one."""
        unused = {key for key, decision in self.decisions.items() if decision == CREATE and key not in keys}
        return self._with_answer(unused, SKIP)

    def _with_answer(self, keys: Set[str], answer: NewOrSkipped | None) -> ResolvedNames:
        names = list[NameInFile]()
        for each in self.names:
            names.append({**each, "answer": answer} if key_of(each["name"]) in keys else each)
        decisions = {key: answer if key in keys else decision for key, decision in self.decisions.items()}
        return replace(self, names=names, decisions=decisions, answered=self.answered - keys)

    def decide(self, name: str) -> NameAnswer | None:
        """Return the exercise that a name of the file means, or what becomes of what has it."""
        return self.decisions[key_of(name)]


def key_of(name: str) -> str:
    """Return a name as names are compared and stored."""
    return normalize(name)[:NAME_LENGTH]


def read_answers(sent: Mapping[str, Any], field: Literal["names", "customers"] = "names") -> dict[str, NameAnswer]:
    """Return answers about names as a request sends them: identifiers, `create` or `skip`. Raises InvalidFields."""
    kind = "an exercise" if field == "names" else "a client"
    answers: dict[str, NameAnswer] = {}
    for name, answer in sent.items():
        if answer in (CREATE, SKIP):
            answers[name] = CREATE if answer == CREATE else SKIP
        elif isinstance(answer, str) and ObjectId.is_valid(answer) and len(answer) == 24:
            answers[name] = ObjectId(answer)
        else:
            message = f"{name[:50]}: must be the identifier of {kind}, create or skip"
            raise invalid_field(field, message, code="INVALID_ANSWER")
    return answers
