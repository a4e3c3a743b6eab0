// A changed card is saved after a rest, one card at a time, since all cards share the version of the workout.
editor.saving = (() => {
  const REST = 800;
  const RETRY = 5_000;
  const TIMEOUT = 20_000;
  const states = new Map();
  let last = Promise.resolve();

  function createToken() {
    const bytes = crypto.getRandomValues(new Uint8Array(24));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
  }

  function tell(form, text, isFailed = false, link = null) {
    const status = form.querySelector("[data-status]");
    status.textContent = text;
    status.classList.toggle("failed", isFailed);
    if (link) status.append(" ", link);
  }

  function touch(form) {
    const state = states.get(form);
    state.changes += 1;
    if (state.isRefused) return; // another user's change is decided on first
    tell(form, "Not saved yet");
    schedule(form, REST);
  }

  function schedule(form, delay) {
    const state = states.get(form);
    clearTimeout(state.timer);
    state.timer = setTimeout(() => save(form), delay);
  }

  const isDirty = (form) => states.get(form).changes !== states.get(form).saved;
  const dirty = () => [...states.keys()].filter(isDirty);

  // Save a card after the cards that are being saved; returns whether all of it is saved.
  function save(form) {
    clearTimeout(states.get(form).timer);
    last = last.then(() => send(form)).catch(() => false);
    return last;
  }

  // What is sent: the same token again for the same values, so that a lost answer is answered again.
  function requestOf(form) {
    const state = states.get(form);
    if (state.request?.changes === state.changes) return state.request;
    const body = new URLSearchParams();
    for (const [name, value] of new FormData(form)) body.append(name, value);
    body.set("submission", createToken());
    state.request = { changes: state.changes, body, rows: editor.rows.all(form) };
    return state.request;
  }

  async function send(form, isRepeated = false) {
    const state = states.get(form);
    if (!isDirty(form) || state.isRefused) return !state.isRefused;
    const request = requestOf(form);
    tell(form, "Saving…");
    let response, answer;
    try {
      response = await fetch(form.action, {
        method: "POST",
        body: request.body,
        headers: { Accept: "application/json" },
        keepalive: String(request.body).length < 60_000,
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT),
      });
      answer = await response.json();
    } catch {
      return retry(form, "Not saved: no connection. It is tried again.");
    }
    if (response.ok && answer?.data) return succeed(form, request, answer.data);
    if (response.status === 403 && answer?.csrf && !isRepeated) {
      for (const field of document.querySelectorAll("input[name=csrf]")) field.value = answer.csrf;
      request.body.set("csrf", answer.csrf);
      return send(form, true);
    }
    if (response.status === 429 || response.status >= 500) return retry(form, "Not saved: the server is busy. It is tried again.");
    state.request = null;
    if (response.status === 409) return refuse(form, answer?.message ?? "Changed by another user.");
    if (response.status === 404) return refuse(form, "This has been deleted.");
    if (response.status === 401 || response.status === 403) return refuse(form, "Not saved: you are signed out.");
    showErrors(form, answer);
    return false;
  }

  function retry(form, text) {
    tell(form, text, true);
    schedule(form, RETRY);
    return false;
  }

  // The form is sent as usual, which shows the values of both, or asks to sign in; the typed values stay.
  function refuse(form, text) {
    states.get(form).isRefused = true;
    const button = document.createElement("button");
    button.type = "submit";
    button.className = "quiet";
    button.dataset.whole = "";
    button.textContent = "Compare and save";
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Reload";
    link.dataset.discard = "";
    const span = document.createElement("span");
    span.className = "row";
    span.append(button, link);
    tell(form, text, true, span);
    return false;
  }

  function succeed(form, request, data) {
    const state = states.get(form);
    for (const field of document.querySelectorAll("input[name=version]")) field.value = data.version;
    const indexes = [...data.indexes];
    const loads = [...(data.loads ?? [])];
    for (const row of request.rows) {
      const isOut = request.body.has(row.querySelector("[name$='.out']").name);
      if (isOut) {
        row.remove();
        continue;
      }
      row.querySelector("[name$='.index']").value = indexes.shift();
      row.querySelector("[data-result]").textContent = loads.shift() ?? "";
    }
    for (const other of states.values()) other.request = null; // they have the version of before
    state.saved = request.changes;
    showErrors(form, { errors: {} });
    showLines(form, data.lines);
    if (data.title) form.closest("li").querySelector("[data-title]").textContent = data.title;
    tell(form, isDirty(form) ? "Not saved yet" : "Saved");
    return !isDirty(form);
  }

  function showLines(form, lines) {
    const place = form.closest("li")?.querySelector("[data-lines]");
    place?.replaceChildren(
      ...lines.filter(Boolean).map((line) => {
        const small = document.createElement("small");
        small.className = "lines";
        small.textContent = line;
        return small;
      }),
    );
  }

  function showErrors(form, answer) {
    for (const error of form.querySelectorAll(".error, .stored")) error.remove();
    for (const field of form.querySelectorAll("[aria-invalid]")) {
      field.removeAttribute("aria-invalid");
      field.removeAttribute("aria-describedby");
    }
    const { confirmed, ...errors } = answer?.errors ?? {};
    const confirmation = form.querySelector("[data-confirm]"); // asks about unusual loads
    if (confirmation) {
      confirmation.hidden = !confirmed;
      confirmation.querySelector("[data-reason]").textContent = confirmed ?? "";
      if (!confirmed) confirmation.querySelector("input").checked = false;
    }
    const summary = form.previousElementSibling;
    if (summary?.matches(".wrong")) summary.remove();
    for (const field of form.elements) {
      const message = errors[field.name];
      if (!message || !field.id) continue;
      const text = document.createElement("p");
      text.className = "error";
      text.id = `${field.id}-error`;
      text.textContent = message;
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", text.id);
      const row = field.closest("[data-row]")?.querySelector("[data-errors]");
      if (row) {
        const label = document.createElement("b");
        label.textContent = `${field.labels[0].lastChild.textContent.trim()}:`;
        text.replaceChildren(label, ` ${message}`);
      }
      row ? row.append(text) : field.after(text);
    }
    if (confirmed) tell(form, "Not saved: please check the marked loads.", true);
    else if (Object.keys(errors).length) tell(form, "Not saved: please correct the marked fields.", true);
    else if (answer?.message) tell(form, `Not saved: ${answer.message}`, true);
  }

  // Save every changed card now; returns whether everything is saved.
  async function flush() {
    await Promise.all(dirty().map(save));
    return dirty().length === 0;
  }

  // Nothing is saved while `work` is under way.
  function hold(work) {
    last = last.then(() => work).catch(() => false);
  }

  function start(form) {
    for (const each of states.keys()) if (!each.isConnected) states.delete(each);
    states.set(form, { changes: 0, saved: 0, timer: 0, request: null, isRefused: false });
    form.addEventListener("input", (event) => event.target.name && touch(form));
    form.addEventListener("change", (event) => event.target === form && touch(form)); // rows were added or removed
  }

  // Move the focus to what is not saved.
  function show() {
    const [form] = dirty();
    (form?.querySelector("[aria-invalid], [data-status] button") ?? form?.querySelector("[data-column]"))?.focus();
  }

  return { start, save, hold, flush, dirty, show };
})();
