"""Forms: submitted text becomes the JSON that the schemas of the REST interface validate; errors are shown by field.

Errors of a text that is read line by line suggest names: buttons that write the name into the text and send the form.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, NamedTuple, TypedDict, cast
from urllib.parse import parse_qsl

import orjson
from aiohttp import web
from marshmallow import Schema, ValidationError, fields, missing
from multidict import MultiDict

from coaching_service.core import errors as core_errors
from coaching_service.core import idempotency, media
from coaching_service.core.database.context import Context, wait_for_caches
from coaching_service.core.database.files import StoredFile
from coaching_service.core.dates import TIMEZONES
from coaching_service.core.fields import input_of
from coaching_service.core.http.request_parsing import Upload, attach_files, read_bytes, read_upload, store_upload
from coaching_service.core.http.responses import to_json
from coaching_service.core.http.routes import MultipartBody, ReceivedFile
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import without_inner_marks
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Integer, Seconds, Timezone, field_errors, read_clock
from coaching_service.integrations.change_descriptions import AMOUNTS, find_unusual, read_versions
from coaching_service.training.workout_text.lines import TextError
from coaching_service.web.formatting import file_size
from coaching_service.web.pages import Page, Redirect, Render

CSRF_FIELD = "csrf"

_CORRECTION = "correction"
_NEEDS_MARKS = re.compile(r"[:|\[«»]|^\s*-")


class _Correction(TypedDict):
    field: str
    line: Annotated[int, Integer(minimum=1)]
    name: str
    replacement: str


_CORRECTION_SCHEMA = input_of(_Correction)()


def apply_correction(data: MultiDict[str]) -> None:
    """Write the name that was clicked into the text of a form; nothing changes if its line was changed meanwhile."""
    for value in data.popall(_CORRECTION, []):
        try:
            correction: _Correction = _CORRECTION_SCHEMA.load(orjson.loads(value))
        except (orjson.JSONDecodeError, ValidationError):
            continue
        name = correction["field"]
        lines = data.get(name, "").split("\n")
        at = correction["line"] - 1
        if at < len(lines):  # the name at its place, before the colon of the sets, a note or the end of the line
            place = re.compile(rf"(«\s*)?{re.escape(correction['name'])}(?(1)\s*»)(?=\s*(?:[:|]|$))")
            new = correction["replacement"]
            marked = f"«{new}»" if _NEEDS_MARKS.search(new) else new
            lines[at] = place.sub(marked.replace("\\", r"\\"), lines[at], count=1)
            data[name] = "\n".join(lines)


# 20,000 characters, of a form with a table 60,000, of up to twelve bytes each in URL encoding, and what is around them.
MAX_FORM_BYTES, MAX_TABLE_BYTES = 262_144, 786_432
_MAX_FIELDS = 10_000
_INTEGER = re.compile(r"[+-]?\d{1,15}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d{1,15}([.,]\d{1,15})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)  # 1,000 is ambiguous: one, or one thousand
_FALSE = ("", "false")
# Messages for people who fill in a form; they continue the name of the field. Other codes keep their message.
FIELD_MESSAGES = {
    "INVALID_ID": "must be chosen",
    "INVALID_DATE": "must be a date that exists",
    "INVALID_TIMEZONE": "must be a time zone such as Europe/Madrid",
    "NOT_A_NUMBER": "must be a number such as 77.5 or 77,5, without thousands separators",
    "NOT_AN_INTEGER": "must be a whole number",
    "BROKEN_IMAGE": "is incomplete or damaged: choose another file",
    "BROKEN_VIDEO": "is incomplete or damaged: choose another file",
    "BROKEN_PDF": "is incomplete or damaged: choose another file",
    "PROTECTED_PDF": "must not need a password: save a copy without one, and choose that",
    "COMPLEX_PDF": "is too complex: print it to a new PDF, and choose that",
}
_STALE = "This has been changed since you opened the page, {}, so nothing was saved yet."
_COMPARE = "Fields that differ show the stored value: check each of them and save again."
FormData = MultiDict[str]


class LineError(NamedTuple):
    """What is wrong with a line of a text, and names to click instead of its own."""

    sentence: str
    suggestions: list[dict[str, Any]]


@dataclass
class FormState:
    """The submitted values of a form and its errors.

    `errors` has the message of each invalid field, `form_errors` those that concern no single field. `is_stale`: the
    document was changed after the form was opened. `line_errors`: the errors of a text that is read line by line.
    """

    name: str
    values: FormData = field(default_factory=MultiDict)
    errors: dict[str, str] = field(default_factory=dict)
    form_errors: list[str] = field(default_factory=list)
    line_errors: dict[str, list[LineError]] = field(default_factory=dict)
    is_stale: bool = False

    @property
    def is_rejected(self) -> bool:
        """Whether there is an error: the form of a preview has none."""
        return bool(self.errors or self.form_errors or self.line_errors)

    def get_all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return self.values.getall(name, [])

    def get_lines(self, name: str) -> list[str]:
        """Return every line of every value of a field, trimmed, without empty lines."""
        return _split_lines(self.get_all(name))

    def count_rows(self, name: str) -> int:
        """Return the number of rows submitted of a list of rows."""
        return max(_row_numbers(name, self.values), default=-1) + 1

    @property
    def version(self) -> int | None:
        """The version of the document that the form was opened with, if it was sent."""
        sent = self.values.get("version", "")
        return int(sent) if _INTEGER.fullmatch(sent) else None

    def mark_stale(self, newer_changes: str, *, is_shown: bool) -> None:
        """Say who changed the document since the form was opened; `is_shown`: next to the stored values."""
        self.is_stale = is_shown
        self.form_errors = [_STALE.format(newer_changes) + (f" {_COMPARE}" if is_shown else "")]


def load_form(schema: Schema, data: Mapping[str, str]) -> dict[str, Any]:
    """Return form values as validated by `schema`. Raises ValidationError."""
    values: dict[str, Any] = schema.load(_to_json(schema, MultiDict(data), ""))
    return values


def _to_json(schema: Schema, data: FormData, prefix: str) -> dict[str, Any]:
    """Return the JSON object that REST would receive instead of these form values."""
    values: dict[str, Any] = {}
    for name, schema_field in schema.fields.items():
        key = prefix + name
        if isinstance(schema_field, fields.Nested):
            # An object that may be null and has no field in the form is not a part of the form.
            if not schema_field.allow_none or any(sent.startswith(f"{key}.") for sent in data):
                values[name] = _to_json(schema_field.schema, data, f"{key}.")
        elif isinstance(schema_field, fields.List) and isinstance(schema_field.inner, fields.Nested):
            row_schema = schema_field.inner.schema
            values[name] = [_to_json(row_schema, data, f"{key}.{row}.") for row in _row_numbers(key, data)]
        elif isinstance(schema_field, fields.List):
            if key in data:
                values[name] = [parse_value(schema_field.inner, line) for line in _split_lines(data.getall(key))]
        elif isinstance(schema_field, fields.Boolean):
            values[name] = data.get(key, "") not in _FALSE
        elif key in data and (value := _parse_optional(schema_field, data[key])) is not missing:
            values[name] = value
    return values


def _row_numbers(key: str, data: FormData) -> list[int]:
    """Return the numbers of the rows submitted of a list: `sets.0.load` belongs to row 0."""
    row_field = re.compile(re.escape(key) + r"\.(\d{1,3})\.", re.ASCII)
    return sorted({int(match[1]) for name in data if (match := row_field.match(name))})


def _parse_optional(schema_field: fields.Field[Any], text: str) -> Any:
    """Return the value of a field; for an optional one that is empty None if it is nullable, else its default."""
    if text.strip() or schema_field.required:
        return parse_value(schema_field, text)
    if schema_field.allow_none:
        return None
    return text if schema_field.load_default is missing else missing


def _split_lines(values: Iterable[str]) -> list[str]:
    """Return the members of a list, which is submitted as several values, one value with a member per line, or both."""
    return [line.strip() for value in values for line in value.split("\n") if line.strip()]


def parse_value(schema_field: fields.Field[Any], text: str) -> Any:
    """Return the JSON value that `text` means in a field; other text is returned unchanged, for the field to reject."""
    stripped = text.strip()
    if isinstance(schema_field, Timezone):
        return stripped if stripped in TIMEZONES else _timezones_by_city().get(stripped.casefold(), stripped)
    if isinstance(schema_field, QueryInteger):
        return stripped
    if isinstance(schema_field, Seconds) and (seconds := read_clock(stripped)) is not None:
        return seconds
    if isinstance(schema_field, fields.Integer) and _INTEGER.fullmatch(stripped):
        return int(stripped)
    if isinstance(schema_field, fields.Float) and _DECIMAL.fullmatch(stripped) and not _THOUSANDS.fullmatch(stripped):
        return float(stripped.replace(",", "."))
    return text


@cache
def _timezones_by_city() -> dict[str, str]:
    """Return the time zones of cities that are the only ones of their name: `new york` is America/New_York."""
    cities = [(name.rpartition("/")[2].replace("_", " ").casefold(), name) for name in TIMEZONES if "/" in name]
    counts = Counter(city for city, _ in cities)
    return {city: name for city, name in cities if counts[city] == 1}


def rejected_form(
    name: str,
    data: FormData,
    error: ValidationError | core_errors.ServiceError,
    known_fields: set[str],
    field_messages: Mapping[str, str] | None = None,
) -> FormState:
    """Return the state of a form that was rejected.

    `known_fields`: the names of its fields, without the names of rows. Errors of other fields become `form_errors`.
    `field_messages`: messages by code that apply to this form only.
    """
    form_state = FormState(name, data)
    if isinstance(error, TextError):
        for problem in error.problems:
            place = "" if problem.line is None else f"Line {problem.line}: "
            sentence = place + _to_sentence(problem.description + ("?" if problem.suggestions else ""))
            correction = {"field": problem.path, "line": problem.line or 1, "name": problem.name}
            suggestions = [
                {"name": name, "value": orjson.dumps({**correction, "replacement": name}).decode()}
                for name in problem.suggestions
            ]
            form_state.line_errors.setdefault(problem.path, []).append(LineError(sentence, suggestions))
        for path, line_errors in form_state.line_errors.items():
            form_state.errors[path] = " ".join(each.sentence for each in line_errors)
        return form_state
    if not isinstance(error, ValidationError | core_errors.InvalidFields):
        messages = [error.message] if isinstance(error.message, str) else error.message
        form_state.form_errors = [_to_sentence(message) for message in messages]
        return form_state
    messages_by_code = {**FIELD_MESSAGES, **(field_messages or {})}
    for field_error in field_errors(error) if isinstance(error, ValidationError) else error.errors:
        path = field_error["field"]
        message = messages_by_code.get(field_error["code"], field_error["message"])
        field_name = next((key for key in (path, path.rpartition(".")[0]) if key in known_fields or key in data), None)
        if field_name:
            form_state.errors.setdefault(field_name, _to_sentence(f"This {message}"))
        else:
            form_state.form_errors.append(_to_sentence(f"{path} {message}".strip()))
    return form_state


def _to_sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def field_names(schema: Schema | None, prefix: str = "") -> set[str]:
    """Return the names of all fields of a form, as they are submitted."""
    names: set[str] = set()
    for name, schema_field in (schema.fields if schema else {}).items():
        if isinstance(schema_field, fields.Nested):
            names |= field_names(schema_field.schema, f"{prefix}{name}.")
        names.add(prefix + name)
    return names


# --- Idempotent forms: a form that is sent twice (double click, reload) runs once and returns the first outcome -------
# Every rendered form carries a submission token. The outcome is stored for a day, in the transaction of the change. The
# values count too: a page that is opened again and sent with other values is another submission.


SUBMISSION_FIELD = "submission"
_REPEATED = "The form was sent twice and processed once."
_WAIT_SECONDS, _RETRY_SECONDS = 5.0, 0.1


def create_claim(ctx: Context, request: web.Request, data: FormData, file_hash: str) -> idempotency.Claim | None:
    """Return the claim of a submission and remove its token from `data`; None without a token.

    `file_hash`: the hashes of the form's files.
    """
    token = data.popall(SUBMISSION_FIELD, [""])[0]
    if not token or ctx.principal is None:
        return None
    fingerprint = orjson.dumps([str(ctx.caller.id), token, request.path_qs, list(data.items()), file_hash])
    return idempotency.Claim.of(ctx, hashlib.sha256(fingerprint).hexdigest(), request.method, request.path, None)


async def run_once(ctx: Context, claim: idempotency.Claim, page: Page, page_url: str, arguments: dict[str, Any]) -> Any:
    """Run a form's handler and store its outcome in one transaction; return its result.

    A repeated submission returns a Redirect to where the first one led; it waits for the first one. `page_url`: the URL
    of the form's page. Raises what the handler raises, and RequestInProgress.
    """
    results: list[Any] = []  # of each time that the transaction was tried
    customer_id = None if page.deletes_customer else arguments.get("customer_id")

    async def run(tx: Context) -> tuple[idempotency.StoredResponse, ObjectId | None]:
        results.append(None)
        results[-1] = result = await page.handler(tx, **copy.deepcopy(arguments))
        # Loads or other amounts that are unusual are confirmed first: the template shows `ui.confirm_values`.
        asks = arguments.get("form", {}).get("confirmed") is False
        if asks and (found := await find_unusual(tx, await read_versions(tx, AMOUNTS))):
            message = f"is unusual: {without_inner_marks(' '.join(found)).removesuffix('.')}"
            raise core_errors.invalid_field("confirmed", message, code="UNUSUAL_AMOUNT")
        if isinstance(result, Render):
            return _outcome(page_url, result.repeat_notice), None
        notice = _REPEATED if page.deletes_customer else f"{result.notice} {_REPEATED}"
        return _outcome(result.location, notice, result.part, result.data), result.customer_id

    try:
        for tries_left in reversed(range(int(_WAIT_SECONDS / _RETRY_SECONDS) + 1)):
            try:
                stored = await idempotency.run_once(ctx, claim, customer_id, run)
                break
            except idempotency.RequestInProgress:
                if not tries_left:
                    raise
                await asyncio.sleep(_RETRY_SECONDS)
    except (core_errors.Forbidden, core_errors.NotFound):
        if results:
            raise
        return Redirect("/app", _REPEATED)  # the client is gone, perhaps deleted by the first submission
    if not stored.replayed:
        return results[-1]
    await wait_for_caches(ctx)  # as the first submission does, which may not have been answered yet
    return Redirect(**orjson.loads(stored.body))


async def is_first(ctx: Context, claim: idempotency.Claim) -> bool:
    """Claim a submission whose outcome is not stored; return whether it is the first."""

    async def store_nothing(_: Context) -> tuple[idempotency.StoredResponse, ObjectId | None]:
        return _outcome("", ""), None

    try:
        stored = await idempotency.run_once(ctx, claim, None, store_nothing)
    except idempotency.RequestInProgress:
        return False
    return not stored.replayed


def _outcome(
    location: str, notice: str, part: str = "", data: Mapping[str, object] | None = None
) -> idempotency.StoredResponse:
    outcome = {"location": location, "notice": notice.strip(), "part": part, "data": data}
    return idempotency.StoredResponse(303, to_json(outcome))


# --- Forms with files: text fields are read as in any other form, a file as in a REST upload --------------------------
# A rejected file is an error of its field. The other values stay; the file has to be chosen again.


_PICTURE_NAMES = {media.JPEG: "JPEG", media.PNG: "PNG", media.WEBP: "WebP", "image/heic": "HEIC", media.GIF: "GIF"}


async def read_submission(
    ctx: Context, page: Page, request: web.Request, limits: media.UploadLimits | None
) -> tuple[FormData, Upload]:
    """Return the text values and the file of a form; without `limits` the file is read and discarded.

    Raises what `read_upload` raises, UnsupportedMediaType, TooLarge and BadRequest.
    """
    is_plain = request.content_type == "application/x-www-form-urlencoded"
    if page.upload is None and not is_plain:
        raise core_errors.UnsupportedMediaType("A form is sent as application/x-www-form-urlencoded")
    if page.upload is None or is_plain:
        body = await read_bytes(request, MAX_TABLE_BYTES if page.has_table else MAX_FORM_BYTES)
        try:
            text = body.decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise core_errors.BadRequest("The form could not be read") from None
        # Browsers send CRLF.
        return MultiDict((name, value.replace("\r\n", "\n")) for name, value in pairs), Upload()
    extra_fields = {*field_names(page.schema), CSRF_FIELD, SUBMISSION_FIELD}
    max_bytes = limits.max_bytes(page.upload.size_limit) if limits else 0
    upload = await read_upload(ctx, request, page.upload, max_bytes, extra_fields=extra_fields, drain_oversized=True)
    return MultiDict(upload.texts), upload


def file_messages(multipart: MultipartBody | None) -> dict[str, str]:
    """Return the messages by error code of a form's file field."""
    if multipart is None:
        return {}
    if media.ZIP in multipart.content_types:
        return {"UNSUPPORTED_FILE_TYPE": "must be an export of a company (ZIP), or a table (CSV or XLSX)"}
    if media.CSV in multipart.content_types:
        return {"UNSUPPORTED_FILE_TYPE": "must be a table: a CSV or XLSX file"}
    return {"UNSUPPORTED_FILE_TYPE": f"must be {accepted_files(multipart.content_types)['sentence']}"}


def accepted_files(content_types: Sequence[str]) -> dict[str, str]:
    """Return what a file field accepts: `types` for the browser, formats of `pictures`, and all in a `sentence`."""
    types = media.sendable_types(content_types)
    *formats, last = (name for content_type, name in _PICTURE_NAMES.items() if content_type in types)
    pictures = f"{', '.join(formats)} or {last}"
    kinds = ["a PDF"] if media.PDF in types else []
    kinds += ["an MP4, MOV or WebM video"] if media.MP4 in types else []
    sentence = ", or ".join([*kinds, f"a {pictures} picture"])
    return {"types": ",".join(types), "pictures": pictures, "sentence": sentence}


class ReceivedFiles(NamedTuple):
    """The files of a form with several file fields: those stored, and why others were not, by field."""

    stored: Mapping[str, StoredFile]
    rejected: Mapping[str, str]


@asynccontextmanager
async def with_file(
    page: Page, ctx: Context, upload: Upload, arguments: dict[str, Any], limits: media.UploadLimits
) -> AsyncIterator[Page]:
    """Store the form's files, add them to `arguments`, and yield the page with a handler that keeps them.

    They belong to the client in the path, or of the client who sent the form. A form that has no file field is
    yielded unchanged; one that may be sent without a file has None then. Of several files those that are accepted are
    stored, as `files` (ReceivedFiles). Raises InvalidFields for a file that is missing, too large or not accepted; of
    several if none is accepted.
    """
    if (multipart := page.upload) is None:
        yield page
        return
    customer_id = ctx.caller.id if page.access.audience == "customer" else arguments.get("customer_id")
    async with AsyncExitStack() as stack:  # the files are stored until it ends, unless they are attached by then

        async def store(field: str, each: Upload) -> StoredFile | ReceivedFile:
            if each.too_large:
                message = f"must not be larger than {file_size(limits.max_bytes(multipart.size_limit))}"
                raise core_errors.invalid_field(field, message, code="FILE_TOO_LARGE")
            of_field = replace(multipart, file_field=field)
            storing = store_upload(ctx, each, of_field, customer_id, limits.photo_pixels)
            if (file := await stack.enter_async_context(storing)) is None:
                raise core_errors.invalid_field(field, "must be chosen", code="REQUIRED")
            return file

        if multipart.more_files:
            arguments["files"] = files = await _store_each(multipart, upload, store)
            yield replace(page, handler=attach_files(page.handler, *files.stored.values()))
        elif upload.file is None and not upload.too_large and page.file_optional:
            arguments["file"] = None
            yield page
        else:
            arguments["file"] = file = await store(multipart.file_field, upload)
            yield replace(page, handler=attach_files(page.handler, file))


async def _store_each(
    multipart: MultipartBody, upload: Upload, store: Callable[[str, Upload], Awaitable[StoredFile | ReceivedFile]]
) -> ReceivedFiles:
    """Store the files that were chosen. Raises InvalidFields with the error of each if none is accepted."""
    received = {multipart.file_field: upload, **upload.more_files}
    stored: dict[str, StoredFile] = {}
    errors: list[core_errors.FieldError] = []
    for name, each in received.items():
        if each.file is not None or each.too_large:
            try:
                stored[name] = cast("StoredFile", await store(name, each))  # several files are always stored
            except core_errors.InvalidFields as error:
                errors += error.errors
    if errors and not stored:
        raise core_errors.InvalidFields(errors)
    if not stored:
        raise core_errors.BadRequest("Choose at least one file.")
    messages = {**FIELD_MESSAGES, **file_messages(multipart)}
    return ReceivedFiles(stored, {each["field"]: messages.get(each["code"], each["message"]) for each in errors})
