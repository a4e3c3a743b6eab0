"""The commands of the program, run as an operator runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import pytest

from coaching_service import features
from coaching_service.command_line import serving
from coaching_service.core.auth import ALL_PERMISSIONS, new_master_key, parse_master_key
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import registry
from coaching_service.core.http.routes import routes_of
from coaching_service.core.mcp import tools_of
from coaching_service.installation.indexes import missing_indexes
from coaching_service.people import api_keys, team
from coaching_service.people.customers import batch
from coaching_service.people.identities.passwords import verify_password
from coaching_service.settings import Settings
from tests.support.client import document
from tests.support.commands import PASSWORD, Operator, all_commands, type_in

_COMMANDS = ("serve", "seed", "create-company", "create-key", "ensure-indexes", "routes", "openapi", "new-secret-key")


# --- help ----------------------------------------------------------------------------------------------------------


def test_help_describes_every_command_and_its_parameters() -> None:
    """The program says where to start and names every command; every command says what it needs."""
    result, commands = type_in("--help").ok(), all_commands()
    for word in ("MONGODB_URI", "embedded MongoDB", "coaching-service serve --demo", *commands):
        assert word in result
    assert set(_COMMANDS) <= set(commands)
    for name, command in commands.items():
        assert command.name == name
        text = " ".join(type_in(name, "--help").ok().split())
        assert " ".join((command.help or "").replace("\b", "").split("\f")[0].split()) in text
        for parameter in (each for each in command.params if not getattr(each, "hidden", False)):
            documented = (
                parameter.name.upper() if isinstance(parameter, click.Argument) else max(parameter.opts, key=len)
            )
            assert documented in text
    serve = type_in("serve", "--help").ok()
    for default in ("[127.0.0.1]", "[8080]", "[.local]", "DIR/demo.json"):
        assert default in serve


# --- companies and keys --------------------------------------------------------------------------------------------


async def test_seed_is_atomic_and_repeatable(prepared: Operator, tmp_path: Path) -> None:
    """A failed seed leaves no company, and repeating a seed changes nothing, also after a key rotation.

    A start of the service with that demo company writes its key to a file, in a folder that it creates. Without the key that encrypted the secrets, the command fails and writes nothing.
    """
    db = prepared.services.db
    await db.command("collMod", "customers", validator={"$expr": False})
    with pytest.raises(Exception, match="Document failed validation"):
        await prepared.types("seed")
    assert (await prepared.documents())["companies"] == []
    await db.command("collMod", "customers", validator={})

    first = (await prepared.types("seed")).ok()
    stored = await prepared.documents()
    [company] = stored["companies"]
    assert len(stored["customers"]) >= 3
    assert f"the demo company is {company['_id']}" in first

    old, new = prepared.environment["SECRET_KEYS"], new_master_key()
    again = (await prepared.types("seed", SECRET_KEYS=f"{new},{old}")).ok()
    assert again.startswith("0 shared exercises written")
    assert f"the demo company is {company['_id']}" in again

    result = await prepared.types("seed", SECRET_KEYS=new)
    assert result.refused("cannot be read", "which is not in SECRET_KEYS")
    assert await prepared.documents() == stored

    settings = Settings(mongodb_uri=prepared.environment["MONGODB_URI"], data_dir=tmp_path / "new" / "data")
    await serving._completion(settings, with_demo=True)(prepared.services)
    assert [each.name for each in settings.data_dir.iterdir()] == ["demo.json"]
    written = json.loads((settings.data_dir / "demo.json").read_text())
    assert (await api_keys.authenticate(prepared.services, written["apiKey"])).company.id == company["_id"]


async def test_create_company_and_create_key_print_working_keys(prepared: Operator) -> None:
    """create-company prints a key that acts as the owner; create-key makes another of the same coach."""
    words = ("create-company", "Étoile", "--name", "Olga Owner", "--email", "Olga@Etoile.test")
    result = await prepared.types(*words, "--timezone", "Europe/Paris", "--load-unit", "lb", typed=f"{PASSWORD}\n" * 2)
    assert PASSWORD not in result.out + result.err
    printed = dict(line.split() for line in result.ok().splitlines() if line.startswith(("Company ", "Key ")))
    owner = await api_keys.authenticate(prepared.services, printed["Key"])
    assert (owner.role, owner.name, owner.permissions) == ("OWNER", "Olga Owner", ALL_PERMISSIONS)
    company = owner.company
    assert (str(company.id), company.name) == (printed["Company"], "Étoile")
    assert (company.timezone, company.load_unit) == ("Europe/Paris", "lb")

    another = (await prepared.types("create-key", "--email", "olga@etoile.test ", "--name", "Till")).ok().strip()
    assert another != printed["Key"]
    assert (await api_keys.authenticate(prepared.services, another)).id == owner.id
    named = [key["name"] for key in (await prepared.documents())["apiKeys"]]
    assert named == ["Command line", "Till"]


async def test_password_is_read_from_standard_input(operator: Operator) -> None:
    """Other users of the machine see the options of a command, and not its input."""
    words = ("create-company", "Étoile", "--name", "Olga", "--email", "olga@etoile.test", "--password-stdin")
    too_short = await operator.types(*words, typed="short\n")
    too_short.refused("Invalid value for --password: must be at least 12 characters long.", exit_code=2)
    both = await operator.types(*words, "--password", PASSWORD, typed=f"{PASSWORD}\n")
    both.refused("not both", exit_code=2)
    assert await operator.documents() == {}
    assert PASSWORD not in (await operator.types(*words, typed=f"{PASSWORD}\r\n")).ok()
    (identity,) = (await operator.documents())["identities"]
    assert await verify_password(PASSWORD, identity["passwordHash"])


async def test_create_company_rejects_an_email_address_in_use(prepared: Operator) -> None:
    words = ("create-company", "One", "--name", "Olga", "--password", PASSWORD, "--email")
    (await prepared.types(*words, "olga@one.test")).ok()
    result = await prepared.types(*words, "OLGA@one.test")
    assert result.refused() == "This e-mail address is already used to sign in"
    assert len((await prepared.documents())["companies"]) == 1


async def test_create_company_validates_its_options(operator: Operator) -> None:
    """A password has 12 characters or more (contract section 2), a time zone its IANA name; nothing is written."""
    good = {"--name": "Olga", "--email": "olga@one.test", "--password": "12 character", "--timezone": "Asia/Tokyo"}
    for option, value, sentence in (
        ("--password", "11 characte", "Invalid value for --password: must be at least 12 characters long."),
        ("--timezone", "Middle/Earth", "Invalid value for '--timezone': must be the IANA name of a time zone, such as"),
        ("--email", "olga", "Invalid value for '--email': must be an e-mail address."),
        ("--name", "  ", "Invalid value for '--name': should not be empty."),
        ("--load-unit", "stone", "Invalid value for '--load-unit': 'stone' is not one of 'kg', 'lb'."),
    ):
        words = [word for pair in (good | {option: value}).items() for word in pair]
        (await operator.types("create-company", "One", *words)).refused(sentence, exit_code=2)
    assert await operator.documents() == {}
    (await operator.types("create-company", "One", *[word for pair in good.items() for word in pair])).ok()


async def test_create_key_requires_the_email_address_of_a_coach(prepared: Operator) -> None:
    result = await prepared.types("create-key", "--email", "nobody@one.test")
    assert result.refused() == "No coach signs in with nobody@one.test; create-company creates one"
    assert (await prepared.documents())["apiKeys"] == []


# --- the database --------------------------------------------------------------------------------------------------


async def test_ensure_indexes_creates_missing_indexes(operator: Operator) -> None:
    wanted = {name: each.indexes for name, each in registry.items()}
    assert await missing_indexes(operator.services.db, wanted) != []
    first = (await operator.types("ensure-indexes")).ok()
    assert first.startswith(f"The indexes of {len(wanted)} collections exist: ")
    assert all(name in first for name in wanted)
    assert await missing_indexes(operator.services.db, wanted) == []
    assert (await operator.types("ensure-indexes")).ok() == first


def test_unreachable_database_is_reported() -> None:
    unreachable = "mongodb://127.0.0.1:1/?timeoutMS=100"
    result = type_in("ensure-indexes", MONGODB_URI=unreachable, SECRET_KEYS=new_master_key())
    assert result.refused() == "The database at 127.0.0.1:1 cannot be reached"


async def test_rejected_database_password_is_reported(prepared: Operator) -> None:
    uri = prepared.environment["MONGODB_URI"].replace("://", "://someone:hunter2@")
    result = await prepared.types("ensure-indexes", MONGODB_URI=uri)
    assert (
        result.refused()
        == "The database refuses the user name and password in MONGODB_URI, or that user lacks permissions"
    )


# --- declarations -------------------------------------------------------------------------------------------------


def test_routes_prints_every_operation_with_its_access() -> None:
    lines = {tuple(line.split()[:2]): line for line in type_in("routes").ok().splitlines()}
    for tool in tools_of(features.TOOLS):
        assert str(tool.access) in lines["tool", tool.name]
    for route in routes_of(features.ROUTES):
        line = lines[route.method, route.path]
        assert str(route.access) in line
        assert route.summary[:40] in line


def test_openapi_prints_the_document() -> None:
    """Which test_declared.py validates."""
    printed = json.loads(type_in("openapi", BASE_URL="https://coaching.test/").ok())
    assert printed["openapi"].startswith("3.1.")
    assert printed == json.loads(json.dumps(document())) | {"servers": [{"url": "https://coaching.test"}]}
    documented = {(method.upper(), path) for path, each in printed["paths"].items() for method in each}
    assert documented == {(route.method, route.path) for route in routes_of(features.ROUTES)}


def test_new_secret_key_prints_a_valid_key() -> None:
    first, second = (type_in("new-secret-key").ok().strip() for _ in range(2))
    assert first != second
    assert len(parse_master_key(first)) == 32


# --- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("PORT", "abc", "should be a valid integer"),
        ("PORT", "65536", "should be less than or equal to 65535"),
        ("METRICS_PORT", "99999", "should be less than or equal to 65535"),
        ("MAX_BODY_BYTES", "0", "should be greater than or equal to 1"),
        ("DATABASE_CONCURRENCY", "0", "should be greater than or equal to 1"),
        ("LOG_LEVEL", "loud", "should be 'debug', 'info', 'warning', 'error' or 'critical'"),
        ("LOG_FORMAT", "xml", "should be 'auto', 'json' or 'console'"),
        ("BASE_URL", "coaching.example", "must be http:// or https:// and a host"),
        ("MONGODB_URI", "garbage", "must be mongodb://"),
        ("MAIL_FROM", "coaching", "must be an e-mail address"),
        ("MCP_ORIGINS", "https://a.example,b", "each must be like https://your.host"),
        ("MONGODB_DATABASE", "a.b", 'must be 1 to 60 letters, digits, "_" or "-"'),
    ],
)
def test_invalid_setting_is_named(name: str, value: str, reason: str, tmp_path: Path) -> None:
    result = type_in("ensure-indexes", "--data", str(tmp_path / "data"), **{name: value})
    assert result.refused(reason).startswith(f"The setting {name} is invalid: ")
    assert not (tmp_path / "data").exists()


def test_invalid_secret_settings_are_reported_without_their_values() -> None:
    """The error messages do not contain the password."""
    uri = "mongodb://someone:hunter2@127.0.0.1:1/?timeoutMS=100"
    for result in (
        type_in("seed", MONGODB_URI=uri).refused("With MONGODB_URI set, SECRET_KEYS is needed", "new-secret-key"),
        type_in("seed", MONGODB_URI=uri, SECRET_KEYS="hunter2").refused("SECRET_KEYS", "32 bytes in base64"),
        type_in("seed", MONGODB_URI=uri, SECRET_KEYS=f"{new_master_key()},hunter2").refused("32 bytes in base64"),
        type_in("seed", MONGODB_URI="mongodb://a:hunter2@b@c/", SECRET_KEYS=new_master_key()).refused("MONGODB_URI"),
        type_in("seed", MONGODB_URI="mongo:hunter2", SECRET_KEYS=new_master_key()).refused("MONGODB_URI", "mongodb://"),
    ):
        assert "hunter2" not in result


def test_data_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = type_in("seed", DATA_DIR=str(tmp_path / "file"))
    assert result.refused("cannot be used (File exists): choose another with --data")


# --- doctor ----------------------------------------------------------------------------------------------------------


async def test_doctor_says_what_is_wrong_repairs_it_and_exits_with_a_code(prepared: Operator) -> None:
    """0 without problems, 1 with problems, 2 if it cannot run."""
    owner = await team.create_company(Context(prepared.services), "One", "Olga", "olga@one.test", "no hash")
    await batch.create_customer(Context(prepared.services).acting_as(owner), {"name": "Ana"})
    changes = ("--check", "indexes-missing", "--check", "client-numbers")
    assert "2 checks, 0 problems" in (await prepared.types("doctor", *changes)).ok()

    await prepared.services.db["customerTotals"].update_one({}, {"$inc": {"active": 1}})
    printed = await prepared.types("doctor")
    assert printed.exit_code == 1
    assert "Companies with a wrong number of clients: 1, such as " in printed.out
    assert "Run doctor --repair." in printed.out
    as_json = await prepared.types("doctor", "--json", "--check", "client-numbers")
    assert as_json.exit_code == 1
    [result] = json.loads(as_json.out)
    assert (result["status"], result["findings"][0]["count"]) == ("problem", 1)

    repaired = await prepared.types("doctor", "--repair", *changes)
    assert "repaired: Companies with a wrong number of clients: 1" in repaired.ok()
    (await prepared.types("doctor", *changes)).ok()
    (await prepared.types("doctor", "--check", "unknown")).refused(
        "unknown is not one of: indexes-missing", exit_code=2
    )
    (await prepared.types("doctor", "--delete-unreferenced-files")).refused("needs --repair", exit_code=2)
    unreachable = "mongodb://127.0.0.1:9/?replicaSet=rs0&timeoutMS=100"
    (await prepared.types("doctor", MONGODB_URI=unreachable)).refused("cannot be reached", exit_code=2)


# --- commands that only read ---------------------------------------------------------------------------------------

READING = [
    ("backup", "BACKUP"),
    ("doctor",),
    ("export", "--email", "olga@example.com", "FILE"),
    ("import", "--email", "olga@example.com", "--dry-run", __file__),
    ("migrate", "--plan"),
    ("gc-files", "--dry-run"),
    ("create-key", "--email", "olga@example.com"),
    ("rotate-secrets",),
    ("admin", "companies", "list"),
    ("admin", "jobs", "list"),
    ("admin", "storage"),
    ("admin", "actions"),
]


@pytest.mark.parametrize("words", READING, ids=lambda words: " ".join(words[:2]))
def test_command_without_a_database_creates_none(words: tuple[str, ...], tmp_path: Path) -> None:
    """A mistyped folder is one sentence, and it is not created."""
    data, code = tmp_path / "data", 2 if words[0] == "doctor" else 1
    typed = [str(tmp_path / word) if word in ("BACKUP", "FILE") else word for word in words]
    for _ in ("a folder that is missing", "an empty folder"):
        type_in(*typed, "--data", str(data)).refused(f"There is no database in {data}", "MONGODB_URI", exit_code=code)
        assert [each.name for each in tmp_path.rglob("*")] in ([], ["data"])
        data.mkdir(exist_ok=True)


async def test_command_on_a_mistyped_database_creates_none(operator: Operator, tmp_path: Path) -> None:
    for words in READING:
        typed = [str(tmp_path / word) if word in ("BACKUP", "FILE") else word for word in words]
        result = await operator.types(*typed)
        result.refused("does not exist", "MONGODB_DATABASE", exit_code=2 if words[0] == "doctor" else 1)
        assert await operator.documents() == {}, words
        assert os.listdir(tmp_path) == [], words  # noqa: PTH208 - ruff refuses methods of a Path in asynchronous functions
