"""Settings: read from the environment, validated, and listed in the documentation."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import parseaddr
from pathlib import Path
from typing import Any

import pytest

from coaching_service.command_line.running import describe_settings
from coaching_service.settings import Settings, SettingsError

# Values of the settings that do not take any text or the number 1234.
EXAMPLES: dict[str, tuple[str, object]] = {
    "data_dir": ("/elsewhere", Path("/elsewhere")),
    "secret_keys": ("a,b", ("a", "b")),
    "workers": ("4", 4),
    "registration": ("false", False),
    "database_metrics": ("true", True),
    "mcp_client_documents": ("false", False),
    "smtp_encryption": ("TLS", "tls"),
    "log_format": ("json", "json"),
    "log_level": ("warning", "warning"),
    "mcp_origins": ("https://a.example/,https://b.example", ("https://a.example", "https://b.example")),
    "cors_origins": ("https://a.example/,https://b.example", ("https://a.example", "https://b.example")),
    "trusted_proxies": ("2", 2),
    "archived_retention_months": ("24", 24),
    "webhook_retry_seconds": ("1, 2.5", (1.0, 2.5)),
    "webhooks_allow_http": ("true", True),
    "webhooks_allow_private": ("1", True),
    "webhooks_allow_loopback": ("1", True),
    "shutdown_seconds": ("30", 30),
    "database_concurrency": ("12", 12),
    "database_concurrency_per_company": ("3", 3),
    "request_queue_seconds": ("1.5", 1.5),
    "database_timeout_seconds": ("1.5", 1.5),
    "database_response_seconds": ("1.5", 1.5),
    "database_selection_seconds": ("1.5", 1.5),
    "database_connect_seconds": ("1.5", 1.5),
    "header_timeout_seconds": ("1.5", 1.5),
    "keepalive_timeout_seconds": ("1.5", 1.5),
    "backup_store": ("/mnt/backups", "/mnt/backups"),
    "backup_recipients": (f" age1{'a' * 58}", (f"age1{'a' * 58}",)),
    "operator_email": ("operator@coaching.example", "operator@coaching.example"),
    "base_url": ("https://coaching.example/", "https://coaching.example"),
    "mongodb_uri": ("mongodb://host:27017", "mongodb://host:27017"),
    "oidc_issuer": ("https://login.example/", "https://login.example/"),
    "oidc_create": ("0123456789abcdef01234567", "0123456789abcdef01234567"),
    "mail_from": ("Coaching <us@coaching.example>", "Coaching <us@coaching.example>"),
}
PAIR = ("smtp_username", "smtp_password")
CLIENT = {"oidc_issuer": "https://login.example", "oidc_client_id": "id", "oidc_client_secret": "secret"}


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting in the environment."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_read_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = Settings.model_fields[name].default
    numeric = isinstance(default, int) or name == "metrics_port"
    text, expected = EXAMPLES.get(name, ("1234", 1234) if numeric else ("other", "other"))
    monkeypatch.setenv(name.upper(), text)
    for other in CLIENT.keys() - {name} if name.startswith("oidc_") else ():
        monkeypatch.setenv(other.upper(), CLIENT[other])
    if name in PAIR:
        monkeypatch.setenv(next(each for each in PAIR if each != name).upper(), "the other one")

    assert getattr(Settings.from_environment(), name) == expected


@pytest.mark.parametrize("name", PAIR)
def test_smtp_user_name_and_password_need_each_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name.upper(), "alone")
    with pytest.raises(SettingsError, match="SMTP_USERNAME and SMTP_PASSWORD belong together"):
        Settings.from_environment()


def test_bucket_needs_a_public_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backups contain health data."""
    monkeypatch.setenv("BACKUP_STORE", "s3://bucket/coaching")
    with pytest.raises(SettingsError, match=r"BACKUP_STORE is a bucket.*set BACKUP_RECIPIENTS"):
        Settings.from_environment()
    monkeypatch.setenv("BACKUP_RECIPIENTS", f"age1{'q' * 58}")
    assert Settings.from_environment().backup_store == "s3://bucket/coaching"
    for name, text in (
        ("BACKUP_STORE", "backups"),
        ("BACKUP_STORE", "s3://"),
        ("BACKUP_RECIPIENTS", "AGE-SECRET-KEY-1"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, text)
            with pytest.raises(SettingsError, match=f"{name} is invalid"):
                Settings.from_environment()


@pytest.mark.parametrize(
    ("text", "sender"),
    [
        ("Gym, Inc <us@gym.example>", '"Gym, Inc" <us@gym.example>'),
        ('"Gym, Inc" <us@gym.example>', '"Gym, Inc" <us@gym.example>'),
        ("Gym: the app <us@gym.example>", '"Gym: the app" <us@gym.example>'),
        ("Café <us@gym.example>", "Café <us@gym.example>"),
        ("us@gym.example", "us@gym.example"),
    ],
)
def test_sender_is_one_address_with_its_name(text: str, sender: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_FROM", text)
    mail = EmailMessage()
    mail["From"] = Settings.from_environment().mail_from
    assert Settings.from_environment().mail_from == sender
    assert [each.addr_spec for each in mail["From"].addresses] == ["us@gym.example"]
    assert parseaddr(sender)[1] == "us@gym.example"


def test_sender_that_is_several_addresses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("us,them@gym.example", "Gym <us,them@gym.example>"):
        monkeypatch.setenv("MAIL_FROM", text)
        with pytest.raises(SettingsError, match="MAIL_FROM is invalid: must be an e-mail address"):
            Settings.from_environment()


def test_empty_variables_count_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compose file can pass on variables that may be missing."""
    for name in Settings.model_fields:
        monkeypatch.setenv(name.upper(), "")
    assert Settings.from_environment() == Settings.model_construct()


def test_error_names_every_invalid_variable_but_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "hunter2")
    monkeypatch.setenv("MONGODB_URI", "hunter2")
    with pytest.raises(SettingsError) as raised:
        Settings.from_environment()
    message = str(raised.value)
    assert "PORT is invalid: it should be a valid integer" in message
    assert "MONGODB_URI is invalid: must be mongodb://" in message
    assert "\n" not in message
    assert "hunter2" not in message
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_secrets_are_never_printed() -> None:
    settings = Settings(
        mongodb_uri="mongodb://someone:hunter2@host/",
        secret_keys=("hunter2",),
        smtp_username="us",
        smtp_password="hunter2",
        port=1234,
    )
    assert "hunter2" not in f"{settings} {settings!r} {settings.with_secret_keys()!r} {settings.mail_sender()!r}"
    assert "port=1234" in repr(settings)


def test_documentation_lists_every_setting() -> None:
    """The table is the output of `coaching-service settings`."""
    documentation = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    _, _, rest = documentation.partition("<!-- settings:begin -->\n")
    table, _, _ = rest.partition("\n<!-- settings:end -->")
    assert table == describe_settings()
    assert all(setting.description for setting in Settings.model_fields.values())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"base_url": "http://127.0.0.1:8080"}, True),
        ({"base_url": "http://localhost"}, True),
        ({"base_url": "http://192.168.1.5:8080"}, True),
        ({"base_url": "http://nas.local/coaching"}, True),
        ({"base_url": "http://nas"}, True),
        ({"base_url": "https://coaching.example.com"}, False),
        ({"base_url": "http://[2606:4700::1111]:8080"}, False),
        ({"base_url": "http://93.184.216.34"}, False),
        ({"mongodb_uri": "mongodb://127.0.0.1"}, False),
        ({"mongodb_uri": "mongodb://127.0.0.1", "registration": True}, True),
        ({"base_url": "https://coaching.example.com", "registration": True}, True),
        ({"registration": False}, False),
    ],
)
def test_strangers_sign_up_only_where_the_service_is_tried_out(settings: dict[str, Any], expected: bool) -> None:
    """With the embedded database, which has an URI of its own once it runs, and an address that is not public."""
    assert Settings(**settings).accepts_registration() is expected
    if "mongodb_uri" not in settings:
        assert Settings(**settings).on_embedded("mongodb://127.0.0.1:1").accepts_registration() is expected
