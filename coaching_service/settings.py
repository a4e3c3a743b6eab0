"""The settings of a process: read from environment variables, and what follows from them."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.connection import hosts_of
from coaching_service.core.database.context import MailSender
from coaching_service.core.jobs.mail import FolderMailSender, SmtpMailSender
from coaching_service.core.media import UploadLimits
from coaching_service.core.outbound import is_loopback, is_public_url
from coaching_service.installation.backup.stores import BUCKET

_MAX_DELAY_SECONDS = 604_800
T = TypeVar("T", str, tuple[str, ...])


def _matching(pattern: str, requirement: str) -> AfterValidator:
    """Return a validator of a text, or of the texts of a list, that match `pattern`; its message is `requirement`."""

    def validate(value: T) -> T:
        texts, subject = ([value], "") if isinstance(value, str) else (value, "each ")
        if not all(re.fullmatch(pattern, text) for text in texts):
            context = {"subject": subject, "requirement": requirement}
            raise PydanticCustomError("pattern", "{subject}must be {requirement}", context)
        return value

    return AfterValidator(validate)


def _split(value: object) -> object:
    """Return the items of a comma-separated list."""
    return tuple(item.strip() for item in value.split(",") if item.strip()) if isinstance(value, str) else value


def _validate_sender(sender: str) -> str:
    """Return a sender whose name has the quotes it needs: `Gym, Inc <us@example.com>` would be two addresses."""
    name, _, address = sender.rpartition("<")
    try:
        parsed = Address(name.strip(), addr_spec=address.rstrip(">"))
    except (ValueError, MessageError):
        raise PydanticCustomError("sender", "must be an e-mail address") from None
    return str(parsed) if name and not name.startswith('"') else sender


def _validate_issuer(issuer: str) -> str:
    """Return the address of an issuer unchanged: it is compared character by character."""
    parts = urlsplit(issuer)
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_secure or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise PydanticCustomError("issuer", "must begin with https:// (http:// on this machine) and have no query")
    return issuer


def _validate_delays(delays: tuple[float, ...]) -> tuple[float, ...]:
    if not all(0 < delay <= _MAX_DELAY_SECONDS for delay in delays):
        raise PydanticCustomError("delay", "each must be more than 0 and at most 604800")
    return delays


Port = Annotated[int, Field(ge=1, le=65_535)]
Size = Annotated[int, Field(ge=1, le=1 << 30)]
Seconds = Annotated[float, Field(gt=0, le=600)]
HttpUrl = Annotated[
    str,
    _matching(r"https?://[^/\s?#@]+(/[^\s?#]*)?", "http:// or https:// and a host"),
    AfterValidator(lambda text: text.rstrip("/")),
]
Items = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Origins = Annotated[
    Items,
    AfterValidator(lambda origins: tuple(each.rstrip("/") for each in origins)),
    _matching(r"https?://[^/\s?#@,]+", "like https://your.host"),
]
MongoUri = Annotated[str, _matching(r"mongodb(\+srv)?://\S+", "mongodb:// or mongodb+srv:// and a host")]
Name = Annotated[str, _matching("[A-Za-z0-9_-]{1,60}", '1 to 60 letters, digits, "_" or "-"')]
StoreAddress = Annotated[
    str, _matching(r"/.*|s3://[^/\s]+(/\S*)?", "the absolute path of a folder, or s3://bucket/prefix")
]
Sender = Annotated[
    str, _matching(r"(.*<)?[^@\s<>]+@[^@\s<>]+>?", "an e-mail address"), AfterValidator(_validate_sender)
]
Delays = Annotated[tuple[float, ...], NoDecode, BeforeValidator(_split), AfterValidator(_validate_delays)]
LOWERCASE = BeforeValidator(str.lower)


class SettingsError(Exception):
    """A setting cannot be used; the message is one sentence that says what to do."""


class Settings(BaseSettings):
    """Every setting of the service, each read from the environment variable of the same name in capitals.

    An empty variable counts as unset. `coaching-service settings` lists them, with the text below each, for the
    documentation.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """Port to listen on; 0 takes a free one."""
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Processes that answer requests on the port, with a supervisor. 0: the number of cores minus 1, at least 1. With 1
    there is no supervisor."""
    base_url: HttpUrl | None = None
    """The address clients use; every link begins with it. Unset: `http://HOST:PORT`."""
    min_free_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = 200_000_000
    """Free space on the disk of the embedded database, in bytes, below which changes are refused with 507; reads
    continue. 0: no limit."""
    data_dir: Path = Path(".local")
    """Folder of the embedded database, its secret key, mail files and `demo.json`."""
    mongodb_uri: MongoUri | None = Field(default=None, repr=False)
    """A MongoDB replica set, version 6.0 or newer. Unset: the embedded database."""
    mongodb_database: Name = "coaching"
    """Name of the database."""
    secret_keys: Items = Field(default=(), repr=False)
    """Master keys, newest first, separated by commas. Required with `MONGODB_URI`; without it a key is created in
    `DATA_DIR/secret.key`. `coaching-service new-secret-key` prints a new one."""
    backup_store: StoreAddress | None = None
    """Where `coaching-service backup` stores backups, and the service a list of erasures: a folder or
    `s3://bucket/prefix` with `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and, outside of AWS,
    `AWS_ENDPOINT_URL`."""
    backup_recipients: Annotated[Items, _matching("age1[0-9a-z]{58}", "a public key of age, such as age1...")] = ()
    """Public keys of age, separated by commas, for which backups are encrypted. Required with a bucket.
    `coaching-service new-backup-key` makes one."""
    backup_keep_daily: Annotated[int, Field(ge=1, le=10_000)] = 7
    """Of how many days with backups the newest one remains in the store."""
    backup_keep_weekly: Annotated[int, Field(ge=0, le=10_000)] = 4
    """Of how many weeks with backups the newest one remains too."""
    max_body_bytes: Size = 1_048_576
    """Largest JSON request body, in bytes."""
    max_photo_bytes: Size = 60_000_000
    """Largest photo, in bytes."""
    max_plan_bytes: Size = 25_000_000
    """Largest nutrition plan, in bytes."""
    max_attachment_bytes: Size = 100_000_000
    """Largest attachment of a message, and picture or video of an exercise or a set, in bytes."""
    max_import_bytes: Annotated[int, Field(ge=1, le=1 << 36)] = 1_000_000_000
    """Largest export or spreadsheet to import, in bytes."""
    max_storage_bytes_per_company: Annotated[int, Field(ge=0, le=1 << 50)] = 0
    """Bytes of files that one company may store, with their thumbnails; more are refused with 413. 0: no limit."""
    max_files_per_company: Annotated[int, Field(ge=0, le=1 << 40)] = 0
    """Files that one company may store, with their thumbnails; more are refused with 413. 0: no limit."""
    max_photo_pixels: Size = 50_000_000
    """Largest picture, in pixels, all frames of an animation together. A JPEG that is not progressive is scaled down
    while it is decoded, and may have 8 times as many."""
    database_concurrency: Annotated[int, Field(ge=1, le=1000)] = 8
    """Requests of one process that use the database at the same time. Bulk operations, downloads and password checks
    have limits of their own."""
    database_concurrency_per_company: Annotated[int, Field(ge=1, le=1000)] = 2
    """Of those, requests of one company while others send requests too; alone it may use all."""
    max_connections: Annotated[int, Field(ge=1, le=60_000)] = 4000
    """Open connections of one process; more get 503. It raises its limit of open files for them."""
    max_connections_per_address: Annotated[int, Field(ge=1, le=60_000)] = 256
    """Open connections of one network address to one process; more get 503. Not applied with `TRUSTED_PROXIES`."""
    header_timeout_seconds: Seconds = 10
    """Longest time to receive the headers of a request; then the connection closes."""
    keepalive_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 75
    """Longest time a connection is idle between requests; then it closes."""
    request_queue_length: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Requests of one process that wait while `DATABASE_CONCURRENCY` others run; more get 503."""
    request_queue_seconds: Annotated[float, Field(gt=0, le=60)] = 2.5
    """Longest time a request waits in that queue, for others that change the same schedule, for its authentication, or
    until its password can be checked; then it gets 503."""
    database_timeout_seconds: Seconds = 10
    """Longest time of one database operation. Takes effect as `timeoutMS`; an option of `MONGODB_URI` takes precedence,
    here and below."""
    database_metrics: bool = False
    """Whether `/metrics` has the connections to the database and the duration of its commands. The driver takes about
    25 us more of CPU for each command then."""
    database_response_seconds: Annotated[float, Field(gt=0, le=60)] = 2
    """Longest time a request waits while the database does not respond; then requests get 503 until it responds again.
    Requests that take long while it responds are not affected."""
    database_selection_seconds: Seconds = 3
    """Longest time to wait for a database server that accepts writes (`serverSelectionTimeoutMS`)."""
    database_connect_seconds: Seconds = 3
    """Longest time to connect to a database server; a server that does not respond for this long and one second more
    counts as unreachable (`connectTimeoutMS`)."""
    metrics_port: Port | None = None
    """Serves `/metrics` on its own port. Unset: on the port of the API."""
    metrics_address: str | None = None
    """Where `/metrics` is served: the address that `METRICS_PORT` listens on (`0.0.0.0`: all). Unset: that port listens
    on 127.0.0.1, and the port of the API serves `/metrics` only to callers on the same machine."""
    trusted_proxies: Annotated[int, Field(ge=0, le=10)] = 0
    """Number of your own proxies in front of the service; limits per network address then use the address they report
    in `X-Forwarded-For`."""
    mcp_origins: Origins = ()
    """Origins, separated by commas, of other web pages that may call `/mcp` from a browser."""
    cors_origins: Origins = ()
    """Origins, separated by commas, of other web pages that may call the REST interface from a browser, with a session
    and never with an API key."""
    rate_limit_per_minute: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Requests that each API key, session and connected assistant may send at once, and a minute in the long run, over
    all processes; more get 429. 0: no limit."""
    registration: bool | None = None
    """Whether new companies may sign up. Unset: only with the embedded database, and not if `BASE_URL` is a public
    address."""
    audit_days: Annotated[int, Field(ge=1, le=36_500)] = 400
    """How many days entries of the audit log are kept; a change concerns entries from then on."""
    archived_retention_months: Annotated[int, Field(ge=0, le=1200)] = 0
    """After how many months archived clients are erased, at the earliest 30 days after a mail to the owner that lists
    them. 0: never."""
    invitations_per_day: Annotated[int, Field(ge=0)] = 2000
    """Invitations that a company may send within a day; in its first week at most 200."""
    mcp_client_documents: bool = True
    """Whether applications may identify themselves by the URL of a document, which the service reads. Turn it off where
    it cannot send requests to the Internet."""
    smtp_host: str | None = None
    """Mail server. Unset: mail is written to files in `DATA_DIR/mail`."""
    smtp_port: Port = 587
    """Port of the mail server."""
    smtp_encryption: Annotated[Literal["starttls", "tls", "none"], LOWERCASE] = "starttls"
    """Encryption of the connection to the mail server: `starttls`, `tls` or `none`."""
    smtp_username: str | None = None
    """User name at the mail server."""
    smtp_password: str | None = Field(default=None, repr=False)
    """Password at the mail server."""
    mail_from: Sender = "coaching@localhost"
    """Sender of the service's mail. Without a name, as in `us@example.com`, it gets the company's."""
    oidc_issuer: Annotated[str, AfterValidator(_validate_issuer)] | None = None
    """Issuer of an OpenID provider at which users may sign in, exactly as it names itself: an https address, or http on
    this machine. Its redirect address is `BASE_URL/auth/oidc/callback`."""
    oidc_client_id: str | None = None
    """Identifier of this service at the OpenID provider."""
    oidc_client_secret: str | None = Field(default=None, repr=False)
    """Secret of this service at the OpenID provider."""
    oidc_name: Annotated[str, Field(max_length=60)] = "your organization"
    """What users read of the OpenID provider: "Continue with" and this name."""
    oidc_create: Annotated[str, _matching("[0-9a-f]{24}", "the _id of a company")] | None = None
    """Identifier (`_id`) of the company of which users of the OpenID provider who are not known become employees, who
    see the clients assigned to them. Unset: they have to be invited."""
    operator_email: Annotated[str, _matching(r"[^@\s<>]+@[^@\s<>]+", "an e-mail address")] | None = None
    """Who gets a mail when a scheduled backup fails (`coaching-service report-failure`)."""
    webhook_retry_seconds: Delays = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
    """Seconds, separated by commas, after which a failed delivery of a webhook is tried again."""
    webhooks_allow_http: bool = False
    """For development: webhooks may be sent without encryption, to `http://` addresses."""
    webhooks_allow_private: bool = False
    """For development: webhooks may be sent to addresses that are not public, such as `localhost`. Anyone with an
    account can then send requests into the network of the service."""
    webhooks_allow_loopback: bool = False
    """For development: webhooks may be sent to this machine, `http://127.0.0.1` included. `serve --demo` on a loopback
    address turns it on."""
    log_format: Annotated[Literal["auto", "json", "console"], LOWERCASE] = "auto"
    """`json`, `console`, or `auto`: `console` on a terminal, otherwise `json`."""
    log_level: Annotated[Literal["debug", "info", "warning", "error", "critical"], LOWERCASE] = "info"
    """`debug`, `info`, `warning`, `error` or `critical`."""
    shutdown_seconds: Annotated[int, Field(ge=1, le=600)] = 2
    """Time that running requests get when the service stops; long exports need more."""

    @model_validator(mode="after")
    def _validate_pairs(self) -> Self:
        if (self.smtp_username is None) != (self.smtp_password is None):
            raise PydanticCustomError(
                "smtp_pair", "SMTP_USERNAME and SMTP_PASSWORD belong together: set both, or neither"
            )
        client = (self.oidc_issuer, self.oidc_client_id, self.oidc_client_secret)
        if any(client) != all(client) or (self.oidc_create and not self.oidc_issuer):
            raise PydanticCustomError(
                "oidc", "OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET belong together: set all, or none"
            )
        if (self.backup_store or "").startswith(BUCKET) and not self.backup_recipients:
            raise PydanticCustomError(
                "backup_recipients",
                "BACKUP_STORE is a bucket, and backups contain health data: set BACKUP_RECIPIENTS to the public key "
                "that coaching-service new-backup-key prints",
            )
        return self

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
            sentences = []
            for each in error.errors(include_input=False, include_url=False):
                message = each["msg"].replace("Input should", "it should").removeprefix("Value error, ")
                name = str(each["loc"][0]).upper() if each["loc"] else ""  # empty: of several settings together
                sentences.append(f"The setting {name} is invalid: {message}" if name else each["msg"])
            raise SettingsError("; ".join(sentences)) from None

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
        limits = self.max_photo_bytes, self.max_plan_bytes, self.max_photo_pixels
        return UploadLimits(*limits, self.max_attachment_bytes, self.max_import_bytes)

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


# --- The sockets that the service listens on --------------------------------------------------------------------------


@dataclass(frozen=True)
class Sockets:
    """The sockets of the API, and of the metrics if they have a port of their own."""

    api: socket.socket
    metrics: socket.socket | None = None

    def __enter__(self) -> Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()
        if self.metrics is not None:
            self.metrics.close()


def bind(settings: Settings) -> tuple[Sockets, Settings]:
    """Reserve the ports, and return the sockets with the settings that have the port (0 becomes a free one).

    The sockets do not accept connections yet. Raises SettingsError if an address cannot be used.
    """
    api = _bind(settings.host, settings.port, "--host or --port")
    port = settings.metrics_port
    address, variables = settings.metrics_address or "127.0.0.1", "METRICS_PORT or METRICS_ADDRESS"
    try:
        metrics = None if port is None else _bind(address, port, variables)
    except SettingsError:
        api.close()
        raise
    return Sockets(api, metrics), settings.model_copy(update={"port": api.getsockname()[1]})


def _bind(host: str, port: int, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        # asyncio puts the address into its message, and only a name that does not resolve has no error number.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise SettingsError(f"Cannot listen on {host}:{port} ({reason}): choose another with {setting}") from None
    return bound
