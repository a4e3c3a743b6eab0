"""The requests that are sent to every arm: their files for wrk, and the check that all arms answer the same."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import slots, world
from benchmarks.servers import Server

LOGGED, PRESENTED = "/logged", "/presented"
_SCRIPT = str(Path(__file__).parents[1] / "in_turn.lua")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z")
# What differs from one answer to the next.
_NEW = frozenset(("_id", "createdAt", "updatedAt", "completedAt", "firstAccessToken"))
# What only the service answers, and what only peers do, which return documents as they are stored.
_ONE_SIDED = frozenset(
    [
        "externalId",
        "metadata",
        "profilePhoto",
        "profilePhotoUrl",
        "variables",
        "mediaCount",
        "order",
        "version",
        "isPendingForm",
        "exerciseIds",
        "doneExerciseIds",
        "tally",
        "clientTexts",
        "checkInId",
        "companyId",
        "day",
        "weight",
    ]
)
ONE_SIDED_OF_WRITES = _ONE_SIDED | _NEW


@dataclass(frozen=True)
class Kind:
    """One kind of request: its title, method, targets by arm, whether it writes, its headers.

    `factor` multiplies the length of its slots: of slow requests, so that each slot has enough of them. `expects`: a
    text of each response that has done what it should, for kinds with bodies. `once`: no request may be sent again, so
    that each arm has bodies of its own, also for the first request. `has_presented`: each peer also has an arm with the
    same response as the service's.
    """

    title: str
    method: str
    targets: Mapping[str, float] = field(default_factory=dict)
    writes: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    factor: int = 1
    expects: str = ""
    once: bool = False
    has_presented: bool = False


@dataclass(frozen=True)
class Arm:
    """A server and the prefix of its paths.

    LOGGED makes all writes of the service in one transaction, PRESENTED returns the same response as the service.
    """

    label: str
    server: str
    prefix: str = "/coach"


@dataclass
class Requests:
    """The requests: by kind the key, the file of paths and that of bodies; `sent` counts them by kind and arm.

    `failed_slots` names the slots that were repeated because they failed.
    """

    servers: Mapping[str, Server]
    mongod: int
    folder: Path
    keys: Mapping[str, str]
    files: Mapping[str, list[str]]
    sent: dict[tuple[str, str], int] = field(default_factory=dict)
    failed_slots: list[str] = field(default_factory=list)

    def slot(self, kind: str, of_kind: Kind, arm: Arm, connections: int, seconds: int) -> slots.Slot:
        """Send one kind of request to an arm. Raises slots.BadSlot."""
        server, sent = self.servers[arm.server], self.sent.get((kind, arm.label), 0)
        headers = {"X-API-Key": self.keys[kind], **of_kind.headers}
        arguments = [each for name, value in headers.items() for each in ("-H", f"{name}: {value}")]
        arguments += ["-s", _SCRIPT, server.base_url, "--", of_kind.method, self._paths(kind, arm), str(sent)]
        arguments += [each for each in (self.bodies(kind, arm), of_kind.expects) if each]
        try:
            slot = slots.run(arguments, connections, server.pid, self.mongod, seconds * of_kind.factor)
        except slots.BadSlot as error:
            raise slots.BadSlot(f"{kind}, {arm.label}, {connections} connections: {error}") from None
        unfinished = connections if of_kind.once else 0  # when the slot ended; they are not counted
        self.sent[kind, arm.label] = sent + slot.requests + unfinished
        return slot

    def first(self, kind: str, of_kind: Kind, arm: Arm) -> Any:
        """The JSON of the answer to the first request of a kind. Raises RuntimeError if it fails."""
        path = Path(self._paths(kind, arm)).read_text().splitlines()[0]
        body = self.bodies(kind, arm) if of_kind.once else next(iter(self.files[kind][1:]), None)
        data = Path(body).read_text().splitlines()[0].encode() if body else None
        headers = {"X-API-Key": self.keys[kind], "Content-Type": "application/json", **of_kind.headers}
        url = self.servers[arm.server].base_url + path
        request = urllib.request.Request(url, data, headers, method=of_kind.method)
        return self._answer(arm.label, request, of_kind.expects)

    def read(self, kind: str, path: str) -> Any:
        """The JSON that the service returns at a path, with the key of a kind. Raises RuntimeError if that fails."""
        url = self.servers["service"].base_url + path
        return self._answer("service", urllib.request.Request(url, headers={"X-API-Key": self.keys[kind]}))

    def bodies(self, kind: str, arm: Arm) -> str | None:
        """The file of the bodies of a kind for an arm: its own if it exists, else the common one, if any."""
        _, *common = self.files[kind]
        if not common:
            return None
        own = own_bodies(Path(common[0]), arm)
        return str(own if own.exists() else common[0])

    def _answer(self, label: str, request: urllib.request.Request, expects: str = "") -> Any:
        about = f"{label}: {request.get_method()} {request.full_url}"
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                answer = response.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{about}: {error.code} {error.read()[:500]!r}") from None
        if expects.encode() not in answer:
            raise RuntimeError(f"{about}: {answer[:500]!r}")
        return json.loads(answer)

    def _paths(self, kind: str, arm: Arm) -> str:
        """The file of the paths of a kind with the prefix of an arm."""
        own = self.folder / f"{arm.prefix.strip('/')}-{kind}.paths"
        if not own.exists():
            lines = Path(self.files[kind][0]).read_text().replace("/coach/", f"{arm.prefix}/").splitlines()
            own.write_text("\n".join(world.by_turns(lines) if kind == "log" else lines) + "\n")
        return str(own)


def own_bodies(common: Path, arm: Arm) -> Path:
    """The file of bodies of one arm, which is used in place of the common one if it exists."""
    return common.with_name(f"{common.stem}-{arm.server}-{arm.prefix.strip('/')}{common.suffix}")


def compare(answers: Mapping[str, Any], *, writes: bool, exact: Collection[str] = ()) -> list[str]:
    """Return where arms have not answered the same documents as the first of them.

    Times are compared to the millisecond. For arms that are not `exact`, null, false, empty and no value are the same,
    and what one side computes or stores is left out; of writes also identifiers and times of what is new.
    """
    ours, *theirs = answers
    left_out = ONE_SIDED_OF_WRITES if writes else _ONE_SIDED
    if not plain(_documents(answers[ours]), left_out):
        return [f"{ours} answers nothing"]
    differences: list[str] = []
    for arm in theirs:
        pair = (plain(_documents(answers[each]), None if arm in exact else left_out) for each in (ours, arm))
        if (difference := first_difference(*pair)) is not None:
            differences.append(f"{ours} and {arm}: {difference}")
    return differences


def identifiers_of(answer: Any) -> set[str]:
    """The identifiers of the clients in the result of a tool that lists them."""
    text = answer["result"]["content"][0]["text"]
    return set(re.findall(r"\b[0-9a-f]{24}\b", text))


def _documents(answer: Any) -> Any:
    """The documents of an answer: all of it, or those of a page with their number, or of a copied week."""
    if isinstance(answer, dict) and "docs" in answer:
        names = ("docs", "totalDocs") if "totalDocs" in answer else ("docs", "hasMore")
        return {name: answer.get(name) for name in names}
    return answer["created"] if isinstance(answer, dict) and "created" in answer else answer


def plain(value: Any, left_out: Collection[str] | None) -> Any:
    """A value in the form in which answers are compared: without these fields and empty ones; None: with all fields."""
    if isinstance(value, dict):
        if left_out is None:
            return {name: plain(each, None) for name, each in value.items()}
        fields = {name: plain(each, left_out) for name, each in value.items() if name not in left_out}
        return {name: each for name, each in fields.items() if each or (each == 0 and each is not False)}
    if isinstance(value, list):
        return [plain(each, left_out) for each in value]
    if isinstance(value, str) and (time := _TIME.fullmatch(value)):
        return f"{time[1]}{(time[2] or '.')[:4]:0<4}Z"
    return value


def first_difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """Where two values differ first, with both; None if they are equal."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted(ours.keys() | theirs.keys()):
            if name not in ours or name not in theirs:
                return f"{path}.{name}: only in the {'first' if name in ours else 'second'}"
            if difference := first_difference(ours[name], theirs[name], f"{path}.{name}"):
                return difference
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            if difference := first_difference(*pair, f"{path}[{at}]"):
                return difference
        return None
    return None if ours == theirs else f"{path or 'all'}: {str(ours)[:200]} and {str(theirs)[:200]}"
