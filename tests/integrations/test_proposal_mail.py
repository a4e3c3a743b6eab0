"""Mail to a coach for whom proposals wait: after a minute, at most one in 15 minutes for each assistant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from email.message import EmailMessage

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.mails import mails_once_sent, read_mail
from tests.support.mcp_client import McpHttpClient, propose_invitation
from tests.support.notifications import send_due


@pytest.fixture
async def mcp(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with the coach's key."""
    async with McpHttpClient(public_server, {"X-API-Key": coach.key or ""}) as client:
        yield client


async def received(coach: CoachClient, settings: Settings, minutes: int) -> list[EmailMessage]:
    """The mails to the coach that have been sent so many minutes from now, oldest first."""
    await send_due(coach.ctx, after=timedelta(minutes=minutes))
    mails = await mails_once_sent(coach.ctx.services, settings.data_dir / "mail", companyId=coach.ctx.company_id)
    return [each for each in mails if each["To"] == str(coach.ctx.caller.email) and "assistant" in each["Subject"]]


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


async def test_no_mail_repeats_what_was_announced_when_a_newer_one_is_decided(
    mcp: McpHttpClient, coach: CoachClient, settings: Settings
) -> None:
    await propose_invitation(mcp, coach, "Ana")
    assert len(await received(coach, settings, 2)) == 1
    newer = await propose_invitation(mcp, coach, "Bo")
    (await (await coach.interactive()).post(f"/coach/proposals/{newer}/reject")).ok()
    assert len(await received(coach, settings, 18)) == 1
