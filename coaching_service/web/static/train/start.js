// Connects the parts with each other, with the events of the page, and with other tabs.
{
  const REPEATED = 500; // a second tap within this time is not another one
  const NOTICE = "notice";
  const taps = new WeakMap();
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("train") : null;
  const live = document.createElement("div");
  live.className = "hidden-text";
  live.setAttribute("role", "status");
  document.body.append(live);

  const handlers = {
    sent: (details, isOfOtherTab) => {
      if (!isOfOtherTab) train.offline.noteSent(details.entry).catch(() => {});
      return train.sets.showSent(details);
    },
    added: ({ entry }, isOfOtherTab) => entry && isOfOtherTab && train.sets.overlay([entry]),
    rejected: ({ entry }) => entry.user === train.user && train.sets.showRejected(entry),
  };

  function handle({ name, details }, isOfOtherTab) {
    if (name === "rest" && isOfOtherTab) train.restTimer.restore();
    if (name === "signedOut") {
      train.store.close();
      return isOfOtherTab && location.reload();
    }
    handlers[name]?.(details, isOfOtherTab);
    if (name !== "rest") train.queueBar.refresh().catch(() => {});
  }

  // Tell this tab and the others what happened.
  train.tell = (name, details) => {
    const message = { user: train.user, name, details };
    channel?.postMessage(message);
    handle(message, false);
  };
  channel?.addEventListener("message", ({ data }) => {
    if (data.user === train.user || data.name === "signedOut") handle(data, true);
  });

  train.announce = (text) => (live.textContent = text);

  train.renewCsrf = (csrf) => {
    document.body.dataset.csrf = csrf;
    for (const field of document.querySelectorAll("input[name=csrf]")) field.value = csrf;
  };

  // Go where a form leads, and show its notice there.
  train.leave = async ({ location: target, notice }) => {
    await train.drafts.flush();
    if (notice) sessionStorage.setItem(NOTICE, notice);
    const url = new URL(target, location.href);
    const isHere = url.pathname === location.pathname && url.search === location.search;
    if (isHere) {
      history.replaceState(null, "", url);
      location.reload();
    } else {
      location.assign(url);
    }
  };

  // Show the page to which a form leads in place of this one, which has the same address, without loading it again.
  train.refresh = async ({ location: target, notice }) => {
    const url = new URL(target, location.href);
    if (url.pathname !== location.pathname) return train.leave({ location: target, notice });
    try {
      const response = await fetch(url, { headers: { Accept: "text/html" } });
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("main");
      if (!response.ok || !fresh) throw new Error("not a page");
      document.querySelector("main").replaceWith(fresh);
    } catch {
      return train.leave({ location: target, notice });
    }
    if (notice) sessionStorage.setItem(NOTICE, notice);
    showNotice();
    document.querySelector("main").focus();
  };

  function showNotice() {
    const text = sessionStorage.getItem(NOTICE);
    sessionStorage.removeItem(NOTICE);
    const main = document.querySelector("main");
    if (!text || !main || main.querySelector(".notice")) return;
    const notice = document.createElement("div");
    notice.className = "notice";
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    status.textContent = text;
    notice.append(status);
    main.prepend(notice);
  }

  document.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      const isSignOut = form.getAttribute("action")?.split("?")[0] === "/app/sign-out";
      if (form.matches("form[data-queue]") && train.forms.isPlain(form)) train.drafts.remove(form);
      if (!isSignOut && !train.forms.isQueued(form)) return;
      event.preventDefault();
      event.stopPropagation(); // app.js would ignore a set that is taken back within three seconds
      const button = event.submitter ?? form.querySelector("button:not([type=button])");
      if (train.sets.asks(form, button)) return form.elements.confirmed.focus();
      if (event.timeStamp - (taps.get(form) ?? -REPEATED) < REPEATED) return; // not of the clock, which may be set
      taps.set(form, event.timeStamp);
      if (isSignOut) train.signOut.begin(form);
      else train.sets.submit(form, button);
    },
    true,
  );

  for (const type of ["input", "change"]) {
    document.addEventListener(type, ({ target }) => {
      if (!train.forms.isQueued(target.form)) return;
      train.drafts.record(target.form);
      if (target.name !== "confirmed") train.sets.showError(target.form, "");
      train.sets.updateButton(target.form);
    });
  }

  // A set that is done is corrected by leaving its field. Its own button, if that takes the focus, saves it when it is tapped.
  document.addEventListener("focusout", (event) => {
    const { form } = event.target;
    if (!train.forms.isQueued(form) || !train.sets.isCorrected(form)) return;
    const button = train.sets.buttonOf(form);
    if (event.relatedTarget === button || train.sets.asks(form, button)) return;
    taps.set(form, event.timeStamp); // if this is the beginning of a tap on the button, it does not take the set back
    train.sets.submit(form, button);
  });

  window.addEventListener("online", () => train.user && train.queue.send());
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted && train.user) train.queueBar.refresh().then(() => train.queue.send(), () => {});
  });
  window.addEventListener("pagehide", () => train.drafts.flush());
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") return train.drafts.flush();
    train.restTimer.wake();
    if (train.user) train.queue.send();
  });

  async function begin() {
    showNotice();
    train.sets.overlay(await train.offline.readSent(), "sent");
    train.sets.overlay((await train.store.readEntries()).filter((entry) => entry.user === train.user));
    await train.drafts.restore();
    await train.restTimer.restore();
    await train.queueBar.refresh();
    await train.queue.send();
  }
  train.offline.showBar();
  if (train.user) train.offline.start().catch(() => {}); // without it pages open with a connection only
  if (train.user) begin().catch(() => {}); // without a database the forms are sent as they are
  else train.drafts.removeEnded().catch(() => {});
}
