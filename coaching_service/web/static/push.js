"use strict";
// Notifications on this device. A browser asks for permission only after a button was pressed.
{
  const ASKED = "push-asked";
  const DEVICE = "push-device"; // the user and session of the last subscription that was sent, and when
  const RENEWED_AFTER = 24 * 3_600_000;
  const device = document.querySelector("[data-push-device]")?.dataset;
  const panel = document.querySelector("[data-push]");
  const question = document.querySelector("[data-push-ask]");
  const isSupported = "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;
  const isApple = /iPhone|iPad|iPod/.test(navigator.userAgent);

  const say = (text) => panel && (panel.querySelector("[data-push-state]").textContent = text);
  const read = (name) => JSON.parse(localStorage.getItem(name) ?? "null");
  const write = (name, value) => localStorage.setItem(name, JSON.stringify(value));

  async function register() {
    await navigator.serviceWorker.register("/service-worker.js", { scope: "/", updateViaCache: "none" });
    return await navigator.serviceWorker.ready;
  }

  const toBytes = (key) => Uint8Array.from(atob(key.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const toText = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const subscribe = (manager, key) => manager.subscribe({ userVisibleOnly: true, applicationServerKey: toBytes(key) });

  // Send a subscription to the server, and return its current public key.
  async function send(subscription) {
    const { endpoint, keys } = subscription.toJSON();
    const fields = { endpoint, "keys.p256dh": keys.p256dh, "keys.auth": keys.auth, userAgent: navigator.userAgent };
    const body = new URLSearchParams({ csrf: device.csrf, ...fields });
    const response = await fetch(device.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(`${response.status}`);
    const { data } = await response.json();
    write(DEVICE, { user: device.user, session: device.session, endpoint, at: Date.now() });
    return data.key;
  }

  async function turnOn(key) {
    if ((await Notification.requestPermission()) !== "granted") throw new Error("denied");
    const { pushManager } = await register();
    await (await pushManager.getSubscription())?.unsubscribe();
    await send(await subscribe(pushManager, key));
  }

  // A device that shows notifications is sent once a day, and when the session is another one. That of another user ends.
  async function renew() {
    const registration = await navigator.serviceWorker.getRegistration("/");
    const subscription = await registration?.pushManager.getSubscription();
    if (!subscription) return;
    const last = read(DEVICE);
    if (last?.user !== device.user) {
      await subscription.unsubscribe();
      return localStorage.removeItem(DEVICE);
    }
    const isRecent = Date.now() - last.at < RENEWED_AFTER && last.at <= Date.now();
    if (last.session === device.session && last.endpoint === subscription.endpoint && isRecent) return;
    const key = await send(subscription);
    if (toText(subscription.options.applicationServerKey) === key) return;
    await subscription.unsubscribe(); // the key of the service has been replaced
    await send(await subscribe(registration.pushManager, key));
  }

  function explain() {
    if (!isSupported) {
      say(isApple ? "This iPhone or iPad shows notifications only in the installed application." : "This browser shows no notifications.");
    } else if (Notification.permission === "denied") {
      say("Notifications are blocked for this site in the settings of this device.");
    } else if (panel.dataset.on !== "true") {
      panel.querySelector("[data-push-on]").hidden = false;
    }
  }

  function handleTurningOn(button, key, done) {
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await turnOn(key);
        done();
      } catch {
        const isBlocked = Notification.permission !== "granted";
        const text = isBlocked ? "This device did not allow notifications." : "Notifications could not be turned on. Try again when you are online.";
        (panel?.querySelector("[data-push-state]") ?? question.querySelector("[role=status]")).textContent = text;
      }
      button.disabled = false;
    });
  }

  if (panel) {
    explain();
    handleTurningOn(panel.querySelector("[data-push-on]"), panel.dataset.key, () => location.reload());
    document.querySelector("[data-push-off]")?.form.addEventListener("submit", () => {
      localStorage.removeItem(DEVICE);
      navigator.serviceWorker?.getRegistration("/").then(async (found) => (await found?.pushManager.getSubscription())?.unsubscribe());
    });
  }

  // After a finished workout, until it is answered once.
  if (question && !read(ASKED) && (isSupported ? Notification.permission === "default" : isApple)) {
    question.hidden = false;
    const on = question.querySelector("[data-push-on]");
    on.hidden = !isSupported;
    question.querySelector("[data-push-phones]").hidden = isSupported;
    const answer = () => {
      write(ASKED, true);
      question.hidden = true;
    };
    question.querySelector("[data-push-later]").addEventListener("click", answer);
    handleTurningOn(on, question.dataset.key, () => {
      write(ASKED, true);
      question.replaceChildren("Notifications are on for this device.");
    });
  }

  if (device && isSupported && Notification.permission === "granted") renew().catch(() => {});
}
