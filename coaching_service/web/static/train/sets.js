// What a page shows of the forms that the queue sends: sets done at once, "Not sent yet", what was rejected, and records.
train.sets = (() => {
  const NAVIGATION = 10_000; // after this time a page is not left for the one that a form leads to
  const submitted = new Map(); // the times of what was submitted on this page, by token

  const bodyOf = (entry) => new URLSearchParams(entry.body);
  const isCompleted = (entry) => bodyOf(entry).get("isCompleted") === "true";

  function stateOf(form) {
    const state = form.querySelector("[data-set-state]");
    if (state || train.forms.isSet(form)) return state;
    const created = document.createElement("p");
    created.className = "queue-state";
    created.dataset.setState = "";
    created.setAttribute("role", "status");
    form.append(created);
    return created;
  }

  // `queued` is "sent", "unsent" or "rejected".
  function showState(form, queued, text) {
    form.dataset.queued = queued;
    form.dataset.state = text;
    const state = stateOf(form);
    if (state && state.textContent !== text) state.textContent = text;
  }

  // Show a set as done or not.
  function showSet(form, done, queued, text) {
    form.dataset.done = done;
    showState(form, queued, text ?? (queued === "unsent" ? "Not sent yet" : done ? "Done" : ""));
    updateButton(form);
    train.progress.show();
  }

  const buttonOf = (form) => form.querySelector("button[name=isCompleted]");
  const isCorrected = (form) => train.forms.isSet(form) && form.dataset.done === "true" && train.forms.isChanged(form);

  // The button of a set takes it back, unless it is not done or other values have been typed: then it saves them.
  function updateButton(form) {
    const button = buttonOf(form);
    if (!button || !train.forms.isSet(form)) return;
    const done = form.dataset.done === "true";
    const isChanged = isCorrected(form);
    form.toggleAttribute("data-corrected", isChanged);
    button.value = !done || isChanged;
    button.setAttribute("aria-pressed", done && !isChanged);
    const noted = form.querySelector("[data-set-noted]");
    const more = [...form.querySelectorAll(".set-more input")].filter((field) => field.value);
    if (noted) noted.textContent = more.map((field) => `${field.previousElementSibling.textContent} ${field.value}`).join(", ");
    const state = stateOf(form);
    if (state) state.textContent = isChanged ? "Changed, not saved" : (form.dataset.state ?? (done ? "Done" : ""));
  }

  // A set that is not logged.
  function reset(form) {
    delete form.dataset.queued;
    delete form.dataset.state;
    delete form.dataset.loggedAt;
    form.dataset.done = "false";
    updateButton(form);
  }

  // The button of a task or reminder takes back what it did.
  function turnButton(form, done) {
    const button = buttonOf(form);
    if (!button) return;
    button.value = !done;
    button.setAttribute("aria-pressed", done);
  }

  function showUnsent(entry) {
    const form = train.forms.find(entry.formId);
    if (!form) return;
    if (entry.isSet) return showSet(form, isCompleted(entry), "unsent");
    turnButton(form, isCompleted(entry));
    showState(form, "unsent", ["Not sent yet", ...(train.forms.isRepeated(form) ? entry.typed : [])].join(". "));
  }

  function showRejected(entry) {
    const form = train.forms.find(entry.formId);
    if (!form) return;
    const text = `Not saved: ${entry.rejection.message}`;
    if (entry.isSet) {
      showSet(form, false, "rejected", "Not saved");
      if (form.querySelector("[data-set-noted]")?.textContent) form.closest(".card").querySelector(".set-switch").open = true;
      return showError(form, entry.rejection.message);
    }
    turnButton(form, !isCompleted(entry));
    showState(form, "rejected", text);
  }

  const SHORTER = [[/: This /g, " "], [/ or 77,5, without thousands separators/g, ""]];

  // One short line under a set, until another value is typed.
  function showError(form, text) {
    const place = form.querySelector("[data-set-error]");
    if (!place) return;
    place.textContent = SHORTER.reduce((short, [pattern, by]) => short.replace(pattern, by), text);
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    if (!text && form.dataset.queued === "rejected") reset(form);
  }

  // What is stored on this device lies over the values of the server. `sent`: it has been sent since the page was saved.
  function overlay(entries, sent) {
    for (const entry of entries) {
      const form = train.forms.find(entry.formId);
      if (!form) continue;
      if (train.forms.isRepeated(form)) {
        if (sent) showState(form, "sent", ["Sent", ...entry.typed].join(". "));
        else (entry.rejection ? showRejected : showUnsent)(entry);
        continue;
      }
      const body = bodyOf(entry);
      form.dispatchEvent(new CustomEvent("restore", { detail: Object.fromEntries([...body.keys()].map((name) => [name, body.getAll(name)])) }));
      const names = Object.keys(train.forms.read(form));
      train.forms.takeOver(form, Object.fromEntries(names.map((name) => [name, body.getAll(name)])));
      train.forms.noteTime(form, body.get("loggedAt"));
      if (sent) showAsSent(form, entry);
      else (entry.rejection ? showRejected : showUnsent)(entry);
      if (entry.isSet && isCompleted(entry) && !entry.rejection) train.extraSets.offerNext(form);
    }
  }

  function showAsSent(form, entry) {
    if (entry.isSet) return showSet(form, isCompleted(entry), "sent");
    turnButton(form, isCompleted(entry));
    showState(form, "sent", "Saved");
  }

  const LIMITS = { load: "usual", reps: "mostReps", seconds: "mostSeconds" };

  // Show the question about a load, repetitions or a time that are probably typing errors; returns whether it is not
  // answered yet.
  function asks(form, submitter) {
    const question = form.querySelector(".wk-confirm");
    if (!train.forms.isSet(form) || !question || submitter?.value !== "true") return false;
    const unusual = Object.entries(LIMITS).filter(
      ([name, limit]) => Number(train.forms.asNumber(form.elements[name]?.value ?? "")) > Number(form.dataset[limit]),
    );
    const names = unusual.map(([name]) => name);
    for (const name of Object.keys(LIMITS)) form.elements[name]?.toggleAttribute("data-unusual", names.includes(name));
    question.classList.toggle("shown", unusual.length > 0);
    if (!unusual.length) return false;
    return !form.elements.confirmed.checked;
  }

  async function submit(form, submitter) {
    const wasDone = form.dataset.done === "true";
    const entry = train.queue.createEntry(form, submitter);
    submitted.set(entry.token, Date.now());
    train.drafts.forget(form);
    try {
      await train.queue.add(entry);
    } catch {
      return sendPlainly(form, submitter); // this browser stores nothing here
    }
    train.drafts.removeCopy(entry.formId);
    train.forms.setBase(form, train.forms.read(form));
    train.forms.noteTime(form, bodyOf(entry).get("loggedAt"));
    showUnsent(entry);
    if (train.forms.isRepeated(form)) train.forms.clear(form);
    if (entry.isSet && isCompleted(entry)) train.extraSets.offerNext(form);
    if (entry.isSet && isCompleted(entry) && !wasDone) train.restTimer.start(Number(form.dataset.rest), entry.label);
    if (entry.isSet && !isCompleted(entry)) train.restTimer.stop(entry.label);
    train.tell("added", { entry });
    train.queue.send();
  }

  function sendPlainly(form, submitter) {
    if (submitter?.name) {
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name: submitter.name, value: submitter.value });
      form.append(field);
    }
    HTMLFormElement.prototype.submit.call(form);
  }

  // An entry was sent, from this tab or another one.
  async function showSent({ entry, answer }) {
    const waiting = await train.queue.list();
    const form = train.forms.find(entry.formId);
    if (form && !waiting.some((other) => other.formId === entry.formId)) {
      if (entry.isSet) showStored(form, entry, answer.data?.set);
      else showState(form, "sent", "Saved");
    }
    const isOfThisPage = (each) => each.page.split("?")[0] === location.pathname;
    if (isOfThisPage(entry) && !waiting.some(isOfThisPage)) train.progress.correct(answer.data?.workout);
    celebrate(answer.data?.records ?? []);
    const at = submitted.get(entry.token);
    const isWaitedFor = (at && Date.now() - at < NAVIGATION) || (form && train.forms.isRepeated(form));
    if (!entry.isSet && isWaitedFor && !waiting.length) {
      if (form && "refresh" in form.dataset) train.refresh(answer);
      else train.leave(answer);
    }
  }

  // The server's set: another one than was sent, if that was later.
  function showStored(form, entry, stored) {
    if (stored) {
      const amounts = Object.entries(stored).filter(([name]) => form.elements[name]?.matches?.("input:not([type=hidden])"));
      train.forms.takeOver(form, Object.fromEntries(amounts.map(([name, value]) => [name, [asText(name, value)]])));
      train.forms.noteTime(form, stored.loggedAt);
    }
    showError(form, "");
    showSet(form, stored?.isCompleted ?? isCompleted(entry), "sent");
  }

  // A number as the page has it in a field: a time from 100 s on as 27:00.
  function asText(name, value) {
    if (value === null) return "";
    const number = Number(value.toFixed(3));
    if (name !== "seconds" || number < 100) return String(number);
    const [hours, minutes, rest] = [Math.floor(number / 3600), Math.floor(number / 60) % 60, Number((number % 60).toFixed(3))];
    const parts = hours ? [hours, minutes, rest] : [minutes, rest];
    return parts.map((part, at) => (at && part < 10 ? `0${part}` : String(part))).join(":");
  }

  function celebrate(records) {
    const place = document.querySelector("[data-records]");
    if (!place) return;
    for (const record of records) {
      const text = ` ${record.exercise}: ${record.text}`;
      if ([...place.children].some((other) => other.textContent.endsWith(text))) continue;
      const line = document.createElement("p");
      line.className = "queue-record";
      const title = document.createElement("b");
      title.textContent = "New record";
      line.append(title, text);
      place.append(line);
    }
  }

  return { overlay, asks, submit, showSent, showRejected, showError, updateButton, buttonOf, isCorrected, reset };
})();
