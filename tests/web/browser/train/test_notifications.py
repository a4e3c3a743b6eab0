"""Notifications in the browser: asked for after a finished workout, and shown and opened by the service worker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import BrowserContext, expect

from tests.support.push_service import Device
from tests.support.service_process import until
from tests.support.training import log
from tests.web.browser.conftest import picture, serious
from tests.web.browser.phone import Trainee

SETTINGS = "/train/settings/notifications"
# A subscription as a browser makes it: this one reaches no push service.
SUBSCRIBE = """(subscription) => {
  let current = null;
  const made = (key) => ({
    endpoint: subscription.endpoint, options: { applicationServerKey: key }, toJSON: () => subscription,
    unsubscribe: async () => { current = null; localStorage.setItem("test-ended", "true"); return true; },
  });
  window.asked = 0;
  const granted = () => localStorage.getItem("test-granted");
  Object.defineProperty(Notification, "permission", { get: () => (granted() ? "granted" : "default") });
  Notification.requestPermission = async () => {
    window.asked += 1;
    localStorage.setItem("test-granted", "true");
    return "granted";
  };
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (!userVisibleOnly) throw new Error("hidden messages are not allowed");
    localStorage.setItem("test-key", btoa(String.fromCharCode(...applicationServerKey)));
    return (current = made(applicationServerKey.buffer));
  };
  PushManager.prototype.getSubscription = async () => current;
}"""


@pytest.fixture
async def device(phone: BrowserContext) -> Device:
    """The subscription that the phone makes."""
    made = Device("https://push.invalid/send/phone", "")
    await phone.add_init_script(f"({SUBSCRIBE})({json.dumps(made.subscription)})")
    return made


async def devices_of(ana: Trainee) -> list[dict[str, Any]]:
    """The stored devices of the client."""
    where = {"companyId": ana.coach.ctx.company_id}
    return await ana.coach.ctx.db["pushSubscriptions"].find(where).to_list(None)


async def test_a_client_is_asked_after_a_workout_turns_a_device_on_and_off_and_opens_a_notification(
    phone: BrowserContext, ana: Trainee, device: Device
) -> None:
    page = await phone.new_page()
    for path in ("/train", ana.path, SETTINGS, "/train"):
        await page.goto(path)
        assert await page.evaluate("window.asked") == 0
    for item in ana.items:
        done = [{"index": index, "reps": 8, "load": 60, "isCompleted": True} for index in (1, 2, 3)]
        (await log(ana.coach, {**ana.block, "customerId": ana.customer["_id"]}, item, customerSets=done)).ok()
    await page.goto(f"{ana.path}/summary")
    question = page.locator("[data-push-ask]")
    await expect(question).to_be_visible()
    assert await page.evaluate("window.asked") == 0
    await picture(page, "small", "train-notifications-question")
    assert await serious(page) == []
    await question.get_by_role("button", name="Not now").tap()
    await expect(question).to_be_hidden()
    await page.reload()
    await expect(page.get_by_role("heading", name="Workout done")).to_be_visible()
    await expect(question).to_be_hidden()
    assert await devices_of(ana) == []

    await page.goto("/train/settings")
    await page.get_by_role("link", name="Notifications").tap()
    await page.get_by_role("button", name="Turn on for this device").tap()
    await expect(page.get_by_text("Notifications are on for this device.")).to_be_visible()
    await expect(page.get_by_text("This device", exact=True)).to_be_visible()
    [stored] = await devices_of(ana)
    assert stored["lastUsedAt"] is None
    await page.get_by_role("button", name="Send a test to this device").tap()
    await expect(page.get_by_text("A test is on its way.")).to_be_visible()
    assert await ana.coach.ctx.db["jobs"].count_documents({"about": stored["subjectId"], "kind": "send_push"}) <= 1
    reminders = page.get_by_role("group", name="Reminders in your plan")
    await reminders.get_by_label("Devices").uncheck()
    await page.locator("input[name=workoutTime]").fill("07:30")
    await page.locator("input[name=quietFrom]").fill("22:00")
    await page.locator("input[name=quietTo]").fill("06:30")
    await page.get_by_label("Show names on devices").check()
    await page.get_by_role("button", name="Save changes").tap()
    await expect(page.get_by_text("Changes saved.")).to_be_visible()
    await picture(page, "small", "train-notifications")
    assert await serious(page) == []
    client = await ana.coach.as_client(ana.customer)
    settings = (await client.get("/customer/me")).ok()["notifications"]
    assert settings["reminders"] == {"mail": True, "push": False}
    assert (settings["workoutTime"], settings["quietFrom"], settings["quietTo"]) == ("07:30", "22:00", "06:30")
    assert settings["showDetails"] is True
    assert settings["proposals"] == {"mail": True, "push": True}, "what the page has not stays as it is"
    await page.get_by_role("button", name="Turn off for").tap()
    await expect(page.get_by_text("Notifications are off for that device.")).to_be_visible()
    assert await devices_of(ana) == []
    await page.get_by_role("link", name="What each phone needs").tap()
    await expect(page.get_by_role("heading", name="iPhone and iPad")).to_be_visible()
    await picture(page, "small", "train-notifications-phones")

    await page.goto("/train")
    # Chromium without windows shows no notifications, so what the service worker shows is recorded instead.
    await page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    await until(lambda: phone.service_workers, "the service worker", 30)
    [worker] = phone.service_workers
    content = {"title": "Time to train", "body": "Your workout of today", "path": ana.path, "tag": "workout-1"}
    show = """(content) => {
      const shown = [];
      self.registration.showNotification = async (title, { body, tag, data }) => void shown.push({ title, body, tag, ...data });
      self.dispatchEvent(new PushEvent("push", { data: JSON.stringify(content) }));
      return shown;
    }"""
    assert await worker.evaluate(show, content) == [content]
    click = """(path) => {
      const notification = { data: { path }, close: () => {} };
      self.dispatchEvent(Object.assign(new Event("notificationclick"), { notification, waitUntil: () => {} }));
    }"""
    await worker.evaluate(click, ana.path)
    await page.wait_for_url(f"**{ana.path}")
    await expect(page.get_by_role("heading", name="Upper body")).to_be_visible()
    paths = ["/train", "/app/inbox", "https://evil.example", "//evil.example", "/oauth/authorize", "javascript:0", None]
    assert await worker.evaluate("(paths) => paths.map(isOwnPage)", paths) == [True, True] + [False] * 5
