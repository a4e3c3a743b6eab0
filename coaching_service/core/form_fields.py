"""Text fields of multipart forms with other values than text."""

from __future__ import annotations

from typing import Any

import orjson
from marshmallow import fields

from coaching_service.core.validation_messages import DEFAULT_CODE, Message

_MAX_ENTRIES, _MAX_BYTES = 5_000, 1_000_000


class FormBoolean(fields.Boolean):
    """A boolean in a text field of a multipart form: `true` or `false`, and nothing else."""

    default_error_messages = {"invalid": Message("must be true or false", DEFAULT_CODE)}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if value not in ("true", "false"):
            raise self.make_error("invalid")
        return bool(value == "true")


class FormObject(fields.String):
    """A JSON object of strings in a text field of a multipart form; a dictionary in Python, empty without text."""

    default_error_messages = {"invalid": Message("must be a JSON object of strings", DEFAULT_CODE)}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        try:
            read = orjson.loads(value or "{}") if len(value or "") <= _MAX_BYTES else None
        except orjson.JSONDecodeError:
            raise self.make_error("invalid") from None
        if not isinstance(read, dict) or len(read) > _MAX_ENTRIES:
            raise self.make_error("invalid")
        if not all(isinstance(each, str) for each in read.values()):
            raise self.make_error("invalid")
        return read
