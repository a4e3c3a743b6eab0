"""The settings of a process, read once from the environment."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile

from environs import Env, EnvError

from coaching_service.core.auth.secrets import Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import MailSender
from coaching_service.core.jobs.mail import FolderMailSender, SmtpMailSender

_ORIGIN = re.compile(r"https?://[^/\s?#@,]+")
_ADDRESS = re.compile(r"https?://[^/\s?#@]+(/[^\s?#]*)?")
_MONGODB = re.compile(r"mongodb(\+srv)?://\S+")
_SENDER = re.compile(r"(.*<)?[^@\s<>]+@[^@\s<>]+>?")


class SettingsError(Exception):
    """A setting that cannot be used; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Settings:
    """Every setting of the service; README, Configuration, lists them with their environment names."""

    host: str = "127.0.0.1"
    port: int = 8080
    base_url: str | None = None
    data_dir: Path = Path(".local")
    mongodb_uri: str | None = field(default=None, repr=False)
    mongodb_database: str = "coaching"
    secret_keys: tuple[str, ...] = field(default=(), repr=False)
    max_body_bytes: int = 1_048_576
    database_concurrency: int = 8
    metrics_port: int | None = None
    max_photo_bytes: int = 15_000_000
    max_plan_bytes: int = 25_000_000
    max_photo_pixels: int = 40_000_000
    trusted_proxies: int = 0
    registration: bool = True
    mcp_origins: tuple[str, ...] = ()
    smtp_host: str | None = None
    smtp_port: int = 587
    smtp_username: str | None = None
    smtp_password: str | None = field(default=None, repr=False)
    smtp_encryption: str = "starttls"
    mail_from: str = "coaching@localhost"
    log_format: str = "auto"
    log_level: str = "info"
    shutdown_seconds: int = 2

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the settings. Raises SettingsError naming the variable that cannot be used."""
        env = Env()
        try:
            return cls(
                host=env.str("HOST", "") or cls.host,
                port=_integer(env, "PORT", cls.port, 0, 65_535),
                base_url=_like(env, "BASE_URL", _ADDRESS, "http:// or https:// and a host").rstrip("/") or None,
                data_dir=Path(env.str("DATA_DIR", "") or cls.data_dir),
                mongodb_uri=_like(env, "MONGODB_URI", _MONGODB, "mongodb:// or mongodb+srv:// and a host") or None,
                mongodb_database=_name(env, "MONGODB_DATABASE", cls.mongodb_database),
                secret_keys=tuple(env.list("SECRET_KEYS", [])),
                max_body_bytes=_integer(env, "MAX_BODY_BYTES", cls.max_body_bytes, 1, 1 << 30),
                database_concurrency=_integer(env, "DATABASE_CONCURRENCY", cls.database_concurrency, 1, 1000),
                metrics_port=_integer(env, "METRICS_PORT", 0, 1, 65_535) or None,
                max_photo_bytes=_integer(env, "MAX_PHOTO_BYTES", cls.max_photo_bytes, 1, 1 << 30),
                max_plan_bytes=_integer(env, "MAX_PLAN_BYTES", cls.max_plan_bytes, 1, 1 << 30),
                max_photo_pixels=_integer(env, "MAX_PHOTO_PIXELS", cls.max_photo_pixels, 1, 1 << 30),
                trusted_proxies=_integer(env, "TRUSTED_PROXIES", cls.trusted_proxies, 0, 10),
                mcp_origins=_origins(env),
                registration=env.bool("REGISTRATION", cls.registration),
                smtp_host=env.str("SMTP_HOST", "") or None,
                smtp_port=_integer(env, "SMTP_PORT", cls.smtp_port, 1, 65_535),
                smtp_username=env.str("SMTP_USERNAME", "") or None,
                smtp_password=env.str("SMTP_PASSWORD", "") or None,
                smtp_encryption=_word(env, "SMTP_ENCRYPTION", cls.smtp_encryption, ("starttls", "tls", "none")),
                mail_from=_like(env, "MAIL_FROM", _SENDER, "an e-mail address") or cls.mail_from,
                log_format=_word(env, "LOG_FORMAT", cls.log_format, ("auto", "json", "console")),
                log_level=_word(env, "LOG_LEVEL", cls.log_level, ("debug", "info", "warning", "error", "critical")),
                shutdown_seconds=_integer(env, "SHUTDOWN_SECONDS", cls.shutdown_seconds, 1, 600),
            ).agreeing()
        except EnvError as error:
            raise SettingsError(str(error)) from None

    def agreeing(self) -> Settings:
        """The same. Raises SettingsError for settings that make no sense together."""
        if (self.smtp_username is None) != (self.smtp_password is None):
            raise SettingsError("SMTP_USERNAME and SMTP_PASSWORD belong together: set both, or neither")
        return self

    def with_keys(self) -> Settings:
        """The same with its master keys: SECRET_KEYS, or with the embedded database one kept in the data folder.

        Raises SettingsError when there is none, and when a database is there without the key it was made with.
        """
        if self.secret_keys:
            return self
        if self.mongodb_uri is not None:
            raise SettingsError(
                "With MONGODB_URI set, SECRET_KEYS is needed; make one with: coaching-service new-secret-key"
            )
        file = self.data_dir / "secret.key"
        if not file.exists() and (self.data_dir / "mongodb" / "WiredTiger").exists():
            raise SettingsError(
                f"{file} is missing, and the database beside it was made with it: put it back, or set SECRET_KEYS"
            )
        return replace(self, secret_keys=(_kept_key(file),))

    def post(self) -> MailSender:
        """What sends mail: the SMTP server of the settings, or a folder of files where none is set."""
        if self.smtp_host is None:
            return FolderMailSender(self.data_dir / "mail", self.mail_from)
        return SmtpMailSender(
            self.smtp_host, self.smtp_port, self.mail_from, self.smtp_username, self.smtp_password, self.smtp_encryption
        )

    def vault(self) -> Vault:
        """The vault of the master keys. Raises SettingsError when one is malformed."""
        try:
            return Vault([parse_master_key(text) for text in self.secret_keys])
        except ValueError as error:
            raise SettingsError(f"SECRET_KEYS, or secret.key in the data folder: {error}") from None


def _integer(env: Env, name: str, default: int, minimum: int, maximum: int) -> int:
    if not env.str(name, "").strip():
        return default
    value: int = env.int(name)
    if not minimum <= value <= maximum:
        raise EnvError(f'Environment variable "{name}" invalid: must be from {minimum} to {maximum}.')
    return value


def _word(env: Env, name: str, default: str, words: tuple[str, ...]) -> str:
    value: str = (env.str(name, "") or default).lower()
    if value not in words:
        raise EnvError(f'Environment variable "{name}" invalid: must be one of {", ".join(words)}.')
    return value


def _origins(env: Env) -> tuple[str, ...]:
    listed: list[str] = env.list("MCP_ORIGINS", [])
    given = [origin.strip().rstrip("/") for origin in listed if origin.strip()]
    if not all(_ORIGIN.fullmatch(origin) for origin in given):
        raise EnvError('Environment variable "MCP_ORIGINS" invalid: each must be like https://your.host.')
    return tuple(given)


def _like(env: Env, name: str, pattern: re.Pattern[str], words: str) -> str:
    value: str = env.str(name, "").strip()
    if value and not pattern.fullmatch(value):
        raise EnvError(f'Environment variable "{name}" invalid: must be {words}.')
    return value


def _name(env: Env, name: str, default: str) -> str:
    value: str = env.str(name, "") or default
    if not re.fullmatch("[A-Za-z0-9_-]{1,60}", value):
        raise EnvError(f'Environment variable "{name}" invalid: must be 1 to 60 letters, digits, "_" or "-".')
    return value


def _kept_key(file: Path) -> str:
    """The key in `file`, made on the first start (mode 0600). Nobody ever sees half of it, nor a second one."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            with NamedTemporaryFile("w", dir=file.parent, prefix="secret.") as fresh:  # made with mode 0600
                fresh.write(new_master_key() + "\n")
                fresh.flush()
                os.fsync(fresh.fileno())
                with suppress(FileExistsError):  # another process was faster
                    os.link(fresh.name, file)
        return file.read_text().strip()
    except OSError as error:
        raise SettingsError(
            f"The folder {file.parent} cannot be used ({error.strerror}): choose another with --data"
        ) from None
