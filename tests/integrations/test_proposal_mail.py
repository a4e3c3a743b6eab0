"""Mail to a coach for whom proposals wait: after a minute, at most one in 15 minutes for each assistant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.jobs import mail
from coaching_service.core.jobs.worker import run_due
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.mails import read_mail
from tests.support.mcp_client import McpHttpClient, propose_invitation
from tests.support.notifications import send_due
from tests.support.service_process import until


@pytest.fixture
async def mcp(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with the coach's key."""
    async with McpHttpClient(public_server, {"X-API-Key": coach.key or ""}) as client:
        yield client


async def received(coach: CoachClient, settings: Settings, minutes: int) -> list[EmailMessage]:
    """The mails to the coach that have been sent so many minutes from now, oldest first."""
    services = coach.ctx.services
    await send_due(coach.ctx, after=timedelta(minutes=minutes))
    about = {"kind": mail.SEND, "companyId": coach.ctx.company_id}

    async def is_sent() -> bool:
        await run_due(services, {mail.SEND: mail.send})
        return await services.db["jobs"].count_documents(about) == 0

    await until(is_sent, "the mail to be sent")
    return await asyncio.to_thread(_read_mails, settings.data_dir / "mail", str(coach.ctx.caller.email))


def _read_mails(folder: Path, address: str) -> list[EmailMessage]:
    files = sorted(folder.glob("*.eml"), key=lambda file: file.stat().st_mtime_ns)
    mails = [message_from_bytes(file.read_bytes(), policy=default) for file in files]
    return [each for each in mails if each["To"] == address and "assistant" in each["Subject"]]


async def test_one_mail_reports_what_waits_of_an_assistant(
    mcp: McpHttpClient, coach: CoachClient, settings: Settings
) -> None:
    await propose_invitation(mcp, coach, "Ana")
    await propose_invitation(mcp, coach, "Bo")
    [first] = await received(coach, settings, 2)
    parts = read_mail(first, str(settings.base_url))
    assert parts.subject == "Your assistant waits for your decision"
    assert "Your assistant Test proposes 2 things that you have to approve first." in parts.text
    assert "/app/proposals?status=pending" in parts.text
    assert "Ana" not in parts.text + parts.html

    await propose_invitation(mcp, coach, "Cleo")
    assert len(await received(coach, settings, 2)) == 1
    _, second = await received(coach, settings, 18)  # 15 minutes after the first
    assert "proposes 3 things" in read_mail(second, str(settings.base_url)).text


async def test_a_mail_about_one_proposal_leads_to_it(
    mcp: McpHttpClient, coach: CoachClient, settings: Settings
) -> None:
    proposal = await propose_invitation(mcp, coach, "Ana")
    [sent] = await received(coach, settings, 2)
    text = read_mail(sent, str(settings.base_url)).text
    assert "proposes something that you have to approve first" in text
    assert f"{settings.base_url}/app/proposals/{proposal}" in text


async def test_no_mail_reports_what_is_decided(mcp: McpHttpClient, coach: CoachClient, settings: Settings) -> None:
    proposal = await propose_invitation(mcp, coach, "Ana")
    (await (await coach.interactive()).post(f"/coach/proposals/{proposal}/reject")).ok()
    assert await received(coach, settings, 2) == []
