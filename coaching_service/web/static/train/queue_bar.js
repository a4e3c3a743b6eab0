// The bar at the top: how much is not sent yet, and below it what the server did not accept.
train.queueBar = (() => {
  const PATIENCE = 1_500; // an entry that is sent at once is not worth a message
  const bar = document.querySelector("[data-queue-bar]");
  let section = null;
  let timer = 0;
  let shown = "";

  function count(entries) {
    const noun = entries.every((entry) => entry.isSet) ? "set" : "change";
    const bytes = entries.flatMap((entry) => entry.files ?? []).reduce((sum, [, file]) => sum + file.size, 0);
    return `${entries.length} ${noun}${entries.length === 1 ? "" : "s"}${bytes ? ` (${train.forms.sizeOf(bytes)})` : ""}`;
  }

  async function refresh() {
    if (!bar) return;
    const waiting = await train.queue.list();
    showWaiting(waiting);
    showRejected(await train.queue.listRejected());
    clearTimeout(timer);
    if (waiting.length && bar.hidden) timer = setTimeout(refresh, PATIENCE);
  }

  function showWaiting(waiting) {
    const isLate = (entry) => entry.attempts || Date.now() - entry.createdAt >= PATIENCE;
    const late = waiting.length > 0 && (!bar.hidden || waiting.some(isLate)); // once shown, it stays until all are sent
    const problem = train.queue.problem();
    const key = late ? `${problem} ${count(waiting)}` : "";
    if (key === shown) return;
    shown = key;
    bar.hidden = !late;
    bar.replaceChildren();
    if (!late) return;
    if (problem === "signIn") {
      const link = document.createElement("a");
      link.href = `/app/sign-in?${new URLSearchParams({ next: location.pathname + location.search })}`;
      link.textContent = `Sign in to send ${count(waiting)}`;
      bar.append(link);
    } else if (problem === "otherUser") {
      bar.append(`${count(waiting)} not sent yet: another account is signed in here. Sign in again to send them.`);
    } else {
      const pronoun = waiting.length === 1 ? "It is" : "They are";
      bar.append(`${count(waiting)} not sent yet. ${pronoun} sent when you are online.`);
    }
  }

  function showRejected(rejected) {
    if (!rejected.length) {
      section?.remove();
      section = null;
      return;
    }
    if (!section) {
      section = document.createElement("section");
      section.className = "queue-rejected";
      section.setAttribute("aria-label", "Not saved");
      section.append(document.createElement("details"));
      bar.after(section);
    }
    const summary = document.createElement("summary");
    summary.textContent = `${count(rejected)} not saved`;
    const entries = document.createElement("ul");
    entries.append(...rejected.map(describe));
    section.firstChild.replaceChildren(summary, entries);
    if (rejected.length > 1) section.firstChild.append(createButton("Discard all", "", () => discard(rejected)));
  }

  async function discard(entries) {
    for (const entry of entries) await train.queue.discard(entry);
    train.tell("added", {});
  }

  function describe(entry) {
    const line = document.createElement("li");
    const label = document.createElement("b");
    label.textContent = entry.label;
    const place = document.createElement("p");
    place.textContent = entry.place ?? "";
    const typed = document.createElement("p");
    typed.textContent = entry.typed.join(" · ");
    const reason = document.createElement("p");
    reason.textContent = entry.rejection.message;
    const buttons = document.createElement("div");
    buttons.className = "queue-buttons";
    if (!entry.rejection.isFinal) buttons.append(createButton("Try again", entry.label, () => tryAgain(entry)));
    buttons.append(createButton("Discard", entry.label, () => discard([entry])));
    line.append(label, place, typed, reason, buttons);
    return line;
  }

  async function tryAgain(entry) {
    await train.queue.tryAgain(entry);
    train.tell("added", {});
    train.queue.send();
  }

  function createButton(text, label, work) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = text;
    if (label) button.setAttribute("aria-label", `${text}: ${label}`);
    button.addEventListener("click", work);
    return button;
  }

  return { refresh, count };
})();
