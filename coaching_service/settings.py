"""The settings of a process: read from environment variables, and what follows from them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.connection import hosts_of
from coaching_service.core.database.context import MailSender
from coaching_service.core.jobs.mail import FolderMailSender, SmtpMailSender
from coaching_service.core.media import UploadLimits
from coaching_service.core.outbound import is_public_url
from coaching_service.declared_settings import DeclaredSettings


class SettingsError(Exception):
    """A setting cannot be used; the message is one sentence that says what to do."""


class Settings(DeclaredSettings):
    """The settings of a process, with what follows from them."""

    @classmethod
    def variables(cls) -> frozenset[str]:
        """Return the names of the environment variables."""
        return frozenset(name.upper() for name in cls.model_fields)

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] | None = None) -> Settings:
        """Read the settings, of `variables` first. Raises SettingsError naming each variable that cannot be used."""
        known = {name: (variables or {}).get(name.upper()) for name in cls.model_fields}
        try:
            return cls(**{name: value for name, value in known.items() if value})  # type: ignore[arg-type]  # validated
        except ValidationError as error:
            # Without the input, which may be a secret.
            details = error.errors(include_input=False, include_url=False)
            raise SettingsError("; ".join(_describe_error(each) for each in details)) from None

    def require_database(self) -> None:
        """Raise SettingsError if no database is named and the data folder has none, before one is created."""
        if not self.has_database():
            raise SettingsError(
                f"There is no database in {self.data_dir.absolute()}: name its folder with --data, or set MONGODB_URI"
            )

    def has_database(self) -> bool:
        """Return whether a database is named, or the data folder has one."""
        return self.mongodb_uri is not None or self._embedded_database().exists()

    def _embedded_database(self) -> Path:
        """Return a file that every embedded database has."""
        return self.data_dir / "mongodb" / "WiredTiger"

    def with_secret_keys(self) -> Settings:
        """Return these settings with master keys: SECRET_KEYS, or the key in the folder of the embedded database.

        Creates that key on the first start. Raises SettingsError when there is no key, or when the database exists but
        its key is missing.
        """
        if self.secret_keys:
            return self
        if self.mongodb_uri is not None:
            raise SettingsError(
                "With MONGODB_URI set, SECRET_KEYS is needed; make one with: coaching-service new-secret-key"
            )
        file = self.data_dir / "secret.key"
        if not file.exists() and self._embedded_database().exists():
            raise SettingsError(
                f"{file} is missing, and the database in the same folder was created with it: "
                "put it back, or set SECRET_KEYS"
            )
        return self.model_copy(update={"secret_keys": (_read_or_create_key(file),)})

    def changed(self) -> dict[str, str]:
        """Return the settings that differ from their defaults, by variable, for the log: of secrets only that they are
        set, of MONGODB_URI the hosts."""
        values: dict[str, str] = {}
        for name, setting in type(self).model_fields.items():
            if (value := getattr(self, name)) == setting.default:
                continue
            if name == "mongodb_uri":
                text = hosts_of(value)
            elif not setting.repr:
                text = "***"
            else:
                text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            values[name.upper()] = text
        return values

    def worker_count(self) -> int:
        """Return how many processes answer requests."""
        if self.workers:
            return self.workers
        allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        return max(1, allowed - 1)

    def accepts_registration(self) -> bool:
        """Return whether new companies may sign up."""
        if self.registration is not None:
            return self.registration
        return self.mongodb_uri is None and (self.base_url is None or not is_public_url(self.base_url))

    def on_embedded(self, uri: str) -> Settings:
        """Return these settings with the URI of the embedded database, and what they would mean without one."""
        return self.model_copy(update={"mongodb_uri": uri, "registration": self.accepts_registration()})

    def upload_limits(self) -> UploadLimits:
        """Return the limits of uploaded files."""
        return UploadLimits(
            self.max_photo_bytes,
            self.max_plan_bytes,
            self.max_photo_pixels,
            self.max_attachment_bytes,
            self.max_import_bytes,
        )

    def mail_sender(self) -> MailSender:
        """Return the mail sender: the SMTP server of the settings, or a folder of files where none is set."""
        if self.smtp_host is None:
            return FolderMailSender(self.data_dir / "mail", self.mail_from)
        return SmtpMailSender(
            self.smtp_host, self.smtp_port, self.mail_from, self.smtp_username, self.smtp_password, self.smtp_encryption
        )

    def vault(self) -> Vault:
        """Return the vault of the master keys. Raises SettingsError when one is malformed."""
        try:
            return Vault([parse_master_key(text) for text in self.secret_keys])
        except ValueError as error:
            raise SettingsError(f"SECRET_KEYS, or secret.key in the data folder: {error}") from None


def _describe_error(error: ErrorDetails) -> str:
    if not error["loc"]:  # of several settings together
        return error["msg"]
    message = error["msg"].replace("Input should", "it should").removeprefix("Value error, ")
    return f"The setting {str(error['loc'][0]).upper()} is invalid: {message}"


def _read_or_create_key(file: Path) -> str:
    """Return the master key in `file`, created on the first start with mode 0600.

    The file is complete when it appears and is never replaced, so two processes that start together use the same key.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            with NamedTemporaryFile("w", dir=file.parent, prefix="secret.") as draft:  # created with mode 0600
                draft.write(new_master_key() + "\n")
                draft.flush()
                os.fsync(draft.fileno())
                with suppress(FileExistsError):  # another process was faster
                    os.link(draft.name, file)
        return file.read_text().strip()
    except OSError as error:
        raise SettingsError(
            f"The folder {file.parent} cannot be used ({error.strerror}): choose another with --data"
        ) from None
