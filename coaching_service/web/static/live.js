"use strict";
// What others write appears on an open page of messages. The page is read again, which also marks the messages as read;
// only while it is visible, so that hidden tabs hold no connection.
{
  const DELAY = 1000, PAUSE = 3000, LONGEST_PAUSE = 60000;
  const BY_ITSELF = { "X-Live": "1" }; // such requests do not extend the session
  const list = document.querySelector("[data-live]");
  let after = list?.dataset.liveAfter;
  let following; // the AbortController of the request that waits

  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

  // A message that is changed is replaced, unless it is being used.
  const isUsed = (element) => element.contains(document.activeElement) || element.querySelector("details[open]");

  // Add the messages that the list does not have; what was read before stays where it is.
  const add = (fresh) => {
    const shown = new Map([...list.querySelectorAll("[data-message]")].map((each) => [each.dataset.message, each]));
    const last = [...fresh.querySelectorAll("[data-message]")].filter((each) => shown.has(each.dataset.message)).pop();
    if (!last) return list.replaceChildren(...fresh.childNodes);
    const added = [];
    for (let each = last.nextElementSibling; each; each = each.nextElementSibling) {
      if (!each.matches(".new-from-here")) added.push(each);
    }
    for (const each of fresh.querySelectorAll("[data-message]")) {
      const old = shown.get(each.dataset.message);
      if (old && old.textContent !== each.textContent && !isUsed(old)) old.replaceWith(each);
    }
    list.append(...added);
  };

  const say = (text) => {
    const status = list.parentElement.querySelector("[data-live-status]");
    status.textContent = "";
    requestAnimationFrame(() => { status.textContent = text; });
  };

  const show = async (signal) => {
    const response = await fetch(location.href, { signal, headers: { ...BY_ITSELF, Accept: "text/html" } });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.querySelector("[data-live]");
    if (!fresh) return;
    if (!list.dataset.liveWhole) return add(fresh);
    if (fresh.textContent === list.textContent || isUsed(list)) return;
    list.replaceChildren(...fresh.childNodes);
    say(list.dataset.liveWhole);
  };

  const follow = async () => {
    if (following || document.hidden) return;
    const { signal } = following = new AbortController();
    let wait = PAUSE;
    await pause(DELAY); // a page that is left at once asks nothing
    while (!signal.aborted) {
      try {
        const response = await fetch(`${list.dataset.live}?after=${after}`, { signal, headers: BY_ITSELF });
        // The session has ended: signing in leads back to this page.
        if (response.redirected) return location.reload();
        if (response.ok) {
          const news = await response.json();
          if (news.hasNews) await show(signal);
          after = news.after;
          wait = PAUSE;
          continue;
        }
        if (response.status === 410) return location.reload();
        if (response.status < 500 && response.status !== 429) return;
      } catch (error) {
        if (signal.aborted) return;
      }
      await pause(wait * (0.5 + Math.random()));
      wait = Math.min(2 * wait, LONGEST_PAUSE);
    }
  };

  const stop = () => {
    following?.abort();
    following = undefined;
  };

  if (list) {
    if (list.dataset.liveWhole) {
      const status = document.createElement("p");
      Object.assign(status, { className: "hidden-text" });
      status.setAttribute("role", "status");
      status.dataset.liveStatus = "";
      list.after(status);
    }
    document.addEventListener("visibilitychange", () => (document.hidden ? stop() : follow()));
    window.addEventListener("pagehide", stop);
    window.addEventListener("pageshow", follow);
    follow();
  }
}
