"""The content of mails: plain text and HTML, where they lead, and names that are not what they seem."""

from __future__ import annotations

from dataclasses import replace
from email.headerregistry import AddressHeader
from email.message import EmailMessage, Message
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.auth import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue, worker
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.people.sessions import credentials
from tests.conftest import PASSWORD
from tests.support.mail_servers import Mailbox
from tests.support.mails import check_headers, part_of, read_mail

MAIL = {mail.SEND: features.STEPS[mail.SEND]}
HOSTILE = "<script>alert('1')</script> \"A & B\" </title></h1><img src=//x.test>"
# A name as it is stored, and as it is shown on one line.
NAMES = {
    "plain": ("Strong Gym", "Strong Gym"),
    "markup": (HOSTILE, HOSTILE),
    "line breaks": ("Gym\r\nBcc: eve@example.com\n\nHello\u2028you\x85", "Gym Bcc: eve@example.com Hello you"),
    "control characters": ("Gym\x00\x1b[31m \u202eevil\u2066", "Gym [31m evil"),
    "other letters": ("Zażółć Тренажёр 健身房 نادي 💪", "Zażółć Тренажёр 健身房 نادي 💪"),
    "long": ("Kraftraum " * 20, ("Kraftraum " * 20).strip()),
    "long without spaces": ("Ü" * 200, "Ü" * 200),
    "template": ("{{ body.link }}{% raw %}&amp;", "{{ body.link }}{% raw %}&amp;"),
    "domain": ("Your bank: bank.example", "Your bank: bank.example"),
    "full-width domain": ("bank\uff0eexample", "bank\uff0eexample"),
    "abbreviation": ("St. Gallen Fitness, Dr. Egger", "St. Gallen Fitness, Dr. Egger"),
}
# The names that look like an address or a link, which are not in the subject and the sender.
WITH_ADDRESS = ("markup", "line breaks", "template", "domain", "full-width domain")


async def company_of(mailing: Services, name: str, owner: str) -> tuple[Context, Principal]:
    """A company, with its owner as the caller."""
    address = f"owner-{ObjectId()}@example.com"
    principal = await team.create_company(Context(mailing), name, owner, address, await hash_password(PASSWORD))
    return Context(mailing).acting_as(principal), principal


async def sent_by(mailing: Services, mailbox: tuple[Mailbox, int]) -> list[Message]:
    """The mails that arrived at the mail server, once every queued one is sent."""
    await worker.run_due(mailing, MAIL)
    assert await mailing.db["jobs"].count_documents({"kind": mail.SEND}) == 0
    return mailbox[0].mails


async def forget_password(mailing: Services, address: str) -> None:
    await credentials.request_password_reset(Context(mailing), address)
    await worker.run_due(mailing, {credentials.RESET_REQUESTED: features.STEPS[credentials.RESET_REQUESTED]})


@pytest.mark.parametrize("kind", NAMES)
async def test_names_are_shown_as_they_are_on_one_line(
    mailing: Services, mailbox: tuple[Mailbox, int], kind: str
) -> None:
    """The company, the coach and the client all have the name."""
    stored, shown = NAMES[kind]
    ctx, _ = await company_of(mailing, stored, f"Coach {stored}")
    await batch.create_customer(ctx, {"name": f"Client {stored}", "email": "ana@example.com"}, send_invitation=True)

    [message] = await sent_by(mailing, mailbox)

    parts = read_mail(message, mailing.base_url)
    if kind in WITH_ADDRESS:
        assert parts.subject == "You are invited to your training plan"
    else:
        assert parts.subject == f"{shown} invites you to your training plan"
    assert "Bcc" not in message
    assert message["To"] == "ana@example.com"
    header = message["From"]
    assert isinstance(header, AddressHeader)
    [sender] = header.addresses
    assert sender.addr_spec == "coaching@localhost"
    assert kind != "plain" or sender.display_name == shown
    assert kind not in WITH_ADDRESS or sender.display_name == ""
    assert parts.seen[:2] == [shown, f"Hello Client {shown},"]
    assert f"Hello Client {shown},\n\nCoach {shown} of {shown} invites you to your training plan" in parts.text
    assert "\nBcc" not in parts.text


async def test_invitation_leads_to_the_first_access_of_the_client(
    mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    ctx, _ = await company_of(mailing, "Strong Gym", "Olga Owner")
    created = await batch.create_customer(ctx, {"name": "Ana", "email": "ana@example.com"}, send_invitation=True)

    [message] = await sent_by(mailing, mailbox)

    parts = read_mail(message, mailing.base_url)
    link, decline = parts.links
    assert link.startswith(f"{mailing.base_url}/train/first-access?token={created['firstAccessToken']}.")
    assert parts.links[link] == ["Open your training plan", link]
    assert "Olga Owner of Strong Gym invites you to your training plan, on your phone" in parts.text
    assert "The link works once." in parts.text
    assert "POST /auth" not in parts.text, "clients are no programmers"
    assert message["List-Unsubscribe"] == f"<{decline}>"
    assert parts.links[decline] == ["Not you, or no more of these invitations?"]


@pytest.mark.parametrize(
    ("company", "address", "host"),
    [
        ("Strong Gym", f"{'a' * 28}@example.com", "coaching.example.com"),
        ("Zażółć Gęślą Jaźń " * 6, f"{'b' * 64}@{'c' * 60}.example.com", f"{'sub.' * 40}example.com"),
    ],
)
async def test_long_headers_stay_plain(
    mailing: Services, mailbox: tuple[Mailbox, int], company: str, address: str, host: str
) -> None:
    """Mail programs read encoded words in subjects and names only, not in addresses."""
    ctx, _ = await company_of(replace(mailing, base_url=f"https://{host}"), company, "Olga Owner")
    await batch.create_customer(ctx, {"name": "Ana", "email": address}, send_invitation=True)
    [message] = await sent_by(replace(mailing, base_url=f"https://{host}"), mailbox)
    assert isinstance(message, EmailMessage)
    check_headers(message)
    assert message["To"] == address
    raw = dict(message.raw_items())
    assert raw["List-Unsubscribe"].startswith(f"<https://{host}/train/no-invitations?token=")
    assert raw["Message-ID"].endswith(f"@{host}>")


async def test_coach_who_is_the_company_is_named_once(mailing: Services, mailbox: tuple[Mailbox, int]) -> None:
    ctx, _ = await company_of(mailing, "Olga", "Olga")
    await batch.create_customer(ctx, {"name": "Ana", "email": "ana@example.com"}, send_invitation=True)
    [message] = await sent_by(mailing, mailbox)
    assert "\nOlga invites you" in part_of(message, "plain")


async def test_password_reset_leads_to_the_application_of_its_reader(
    mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    ctx, owner = await company_of(mailing, "Strong Gym", "Olga Owner")
    address = f"ana-{ObjectId()}@example.com"
    ana = await batch.create_customer(ctx, {"name": "Ana", "email": address}, send_invitation=False)
    client = replace(owner, id=ana["_id"], role="CUSTOMER", name="Ana", email=address)
    await identities.create(
        Context(mailing).acting_as(client), ana["_id"], "customer", address, await hash_password(PASSWORD)
    )
    assert owner.email is not None
    await forget_password(mailing, owner.email)
    await forget_password(mailing, address)

    messages = {message["To"]: message for message in await sent_by(mailing, mailbox)}

    for recipient, path, name in ((owner.email, "/app", "Olga Owner"), (address, "/train", "Ana")):
        parts = read_mail(messages[recipient], mailing.base_url)
        [link] = parts.links
        assert link.startswith(f"{mailing.base_url}{path}/reset-password?token=")
        assert parts.subject == f"Set a new password{' for Strong Gym' if path == '/train' else ''}"
        assert ("POST /auth" in parts.text) == (path == "/app")
        assert f"Hello {name}," in parts.seen
        assert "Strong Gym" in parts.seen
        assert messages[recipient]["List-Unsubscribe"] is None


async def test_new_employee_is_led_to_the_application_of_coaches(
    mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    ctx, _ = await company_of(mailing, "Strong Gym", "Olga Owner")
    await team.create(ctx, "Emil", f"emil-{ObjectId()}@example.com", [], "all")
    [message] = await sent_by(mailing, mailbox)
    parts = read_mail(message, mailing.base_url)
    link, _ = parts.links
    assert link.startswith(f"{mailing.base_url}/app/reset-password?token=")
    assert parts.subject == "Welcome to the team of Strong Gym"
    assert "because Olga Owner added a coach with this e-mail address to Strong Gym" in parts.text


async def test_mail_that_an_earlier_version_queued_is_sent_as_plain_text(
    mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    """It was queued without the content of HTML, and its subject with whatever the name of the company was."""
    job = ObjectId()
    content: Any = {"to": "ana@example.com", "subject": "Gym\u2028Bcc: eve@example.com", "text": "Hello Ana,\n\nhi.\n"}
    sealed = mail.seal_content(mailing.vault, job, content)
    await queue.enqueue(Context(mailing), mail.SEND, {"sealed": sealed, "tries": 0}, identifier=job)

    [message] = await sent_by(mailing, mailbox)

    assert message.get_content_type() == "text/plain"
    assert message["Subject"] == "Gym Bcc: eve@example.com"
    assert part_of(message, "plain") == "Hello Ana,\n\nhi.\n"


async def test_queued_mail_is_small_and_can_be_sent_by_an_earlier_version(mailing: Services) -> None:
    """A process of the earlier version, which runs until it is restarted, sends the text; HTML is not stored."""
    ctx, _ = await company_of(mailing, "Strong Gym", "Olga Owner")
    await batch.create_customer(ctx, {"name": "Ana", "email": "ana@example.com"}, send_invitation=True)
    job = await mailing.db["jobs"].find_one({"kind": mail.SEND})
    assert job is not None
    content = mail.open_content(mailing.vault, job["_id"], job["arguments"]["sealed"])
    assert {"to", "subject", "text"} < content.keys()
    assert "<" not in content["text"]
    assert len(job["arguments"]["sealed"]) < 2500
    assert job["runAfter"] <= now()
