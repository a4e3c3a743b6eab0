// Forms are stored on this device before they are sent, and sent one at a time in the order in which they were stored.
// Forms with files have a lane of their own, so that a set does not wait for a video.
// An entry: {id, token, user, url, body, files, label, place, formId, isSet, isRepeated, page, typed, labels, createdAt, attempts,
// rejection}.
train.queue = (() => {
  const TIMEOUT = 15_000;
  const TIMEOUT_OF_FILES = 15 * 60_000;
  const LONGEST_WAIT = 60_000;
  const ATTEMPTS_WITHOUT_ANSWER = 5;
  const hasFiles = (entry) => Boolean(entry.files?.length);
  const lanes = [
    { lock: "train-queue", takes: (entry) => !hasFiles(entry), pause: "pause", timer: 0, isSending: false, isRequested: false },
    { lock: "train-files", takes: hasFiles, pause: "pause of files", timer: 0, isSending: false, isRequested: false },
  ];
  let problem = null; // why entries stay: "signIn", "otherUser", or null for a network or server that does not answer

  const isOwn = (entry) => entry.user === train.user;
  const list = async () => (await train.store.readEntries()).filter((entry) => isOwn(entry) && !entry.rejection);
  const listRejected = async () => (await train.store.readEntries()).filter((entry) => isOwn(entry) && entry.rejection);

  function createToken() {
    const bytes = crypto.getRandomValues(new Uint8Array(24));
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_");
  }

  // The entry of a form as it is now. Each has a submission token of its own, so that A, B, A ends as A.
  function createEntry(form, submitter) {
    const body = new URLSearchParams();
    const files = [];
    for (const [name, value] of new FormData(form)) {
      if (typeof value !== "string") value.size && files.push([name, value]);
      else if (name !== "csrf") body.append(name, value);
    }
    if (submitter?.name) body.append(submitter.name, submitter.value);
    const token = createToken();
    if (body.has("loggedAt")) body.set("loggedAt", train.forms.nextTimeOf(form));
    if (body.has("submission")) body.set("submission", token);
    return {
      token,
      user: train.user,
      url: train.forms.urlOf(form),
      body: body.toString(),
      files,
      label: form.dataset.label || document.querySelector("h1")?.textContent.trim() || document.title,
      place: train.forms.placeOf(form),
      formId: train.forms.idOf(form),
      isSet: train.forms.isSet(form),
      isRepeated: train.forms.isRepeated(form),
      replaces: "replaces" in form.dataset, // one that is not sent
      page: location.pathname + location.search,
      typed: [...train.forms.describe(form), ...(submitter?.dataset.typed ? [submitter.dataset.typed] : [])],
      labels: train.forms.labelsOf(form),
      createdAt: Date.now(),
      attempts: 0,
      rejection: null,
    };
  }

  // Store an entry, in the place of a rejected one of the same form and, for a set, of one that is not sent.
  const add = (entry) =>
    train.store.addEntry(
      entry,
      (old) => old.user === entry.user && old.formId === entry.formId && !entry.isRepeated && (old.rejection || entry.replaces || (old.isSet && entry.isSet)),
    );

  // Send what is stored. One tab sends at a time; a call during sending makes it look again.
  const send = () => Promise.all(lanes.map(sendLane));

  async function sendLane(lane) {
    lane.isRequested = true;
    if (lane.isSending) return;
    lane.isSending = true;
    try {
      while (lane.isRequested) {
        lane.isRequested = false;
        await (navigator.locks ? navigator.locks.request(lane.lock, () => sendAll(lane)) : sendAll(lane));
      }
    } catch {
      schedule(lane, LONGEST_WAIT); // the database cannot be read now
    } finally {
      lane.isSending = false;
    }
  }

  async function sendAll(lane) {
    const pause = await train.store.read("states", lane.pause);
    const left = pause ? pause.until - Date.now() : 0;
    if (left > 0 && left <= pause.wait) return schedule(lane, left); // more is left if the clock was set back
    for (;;) {
      const entry = (await list()).find(lane.takes);
      if (!entry) break;
      if (!(await sendOne(entry, lane))) return;
    }
    if (!(await list()).length) problem = null;
    clearTimeout(lane.timer);
  }

  // Send one entry; returns whether the next one may follow.
  async function sendOne(entry, lane) {
    let outcome = await post(entry);
    if (isStale(outcome) && outcome.answer.user === entry.user && outcome.answer.csrf) {
      train.renewCsrf(outcome.answer.csrf);
      outcome = await post(entry);
    }
    const { status, answer } = outcome;
    if (status === 200 && answer && "location" in answer) {
      await train.store.changeEntry(entry, () => null);
      problem = null;
      train.tell("sent", { entry, answer });
      return true;
    }
    const isOthers = isStale(outcome) && answer.user !== entry.user;
    if ((status === 401 && answer) || isOthers) {
      problem = status === 401 ? "signIn" : "otherUser";
      await keep(entry);
      return false;
    }
    if (!isStale(outcome) && isRejection(outcome, entry)) {
      const isFinal = status === 404 || answer?.code === "ITEM_GONE"; // sending it again cannot help
      const rejection = { message: explain(outcome, entry), isFinal };
      await train.store.changeEntry(entry, (stored) => ({ ...stored, rejection }));
      train.tell("rejected", { entry: { ...entry, rejection } });
      return true;
    }
    problem = null;
    const { wait } = outcome;
    if (wait) await train.store.write("states", { key: lane.pause, until: Date.now() + wait, wait });
    schedule(lane, wait || Math.min(LONGEST_WAIT, 2_000 * 2 ** entry.attempts) * (0.75 + Math.random() / 2));
    await keep(entry);
    return false;
  }

  // Why an entry was rejected, with the labels of the fields that are wrong.
  function explain({ status, answer }, entry) {
    const reasons = Object.entries(answer?.errors ?? {}).map(([name, text]) => `${entry.labels[name] ?? name}: ${text}`);
    return reasons.join(" ") || answer?.message || `The server did not accept this (${status}).`;
  }

  async function keep(entry) {
    await train.store.changeEntry(entry, (stored) => ({ ...stored, attempts: stored.attempts + 1 }));
    train.tell("kept", {});
  }

  const isStale = ({ status, answer }) => status === 403 && answer?.code === "STALE_FORM";

  // A proxy or a network that asks to sign in answers without our JSON; that is no answer to the form for some attempts.
  function isRejection({ status, answer }, entry) {
    if (status < 400 || status >= 500 || [408, 425, 429].includes(status)) return false;
    if (["IDEMPOTENCY_KEY_IN_USE", "COMPANY_SUSPENDED"].includes(answer?.code)) return false;
    return Boolean(answer?.code) || entry.attempts + 1 >= ATTEMPTS_WITHOUT_ANSWER;
  }

  async function post(entry) {
    const body = hasFiles(entry) ? new FormData() : new URLSearchParams();
    for (const [name, value] of new URLSearchParams(entry.body)) body.append(name, value);
    body.set("csrf", document.body.dataset.csrf);
    for (const [name, file] of entry.files ?? []) body.append(name, file, file.name);
    const controller = new AbortController();
    const timeout = setTimeout(() => controller.abort(), hasFiles(entry) ? TIMEOUT_OF_FILES : TIMEOUT);
    try {
      const response = await fetch(entry.url, {
        method: "POST",
        body,
        headers: { Accept: "application/json" },
        redirect: "manual",
        signal: controller.signal,
      });
      const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
      const seconds = Number(response.headers.get("Retry-After"));
      return { status: response.status, answer: isJson ? await response.json() : null, wait: seconds > 0 ? seconds * 1000 : 0 };
    } catch {
      return { status: 0, answer: null, wait: 0 };
    } finally {
      clearTimeout(timeout);
    }
  }

  function schedule(lane, wait) {
    clearTimeout(lane.timer);
    lane.timer = setTimeout(sendLane, wait, lane);
  }

  const discard = (entry) => train.store.changeEntry(entry, () => null);
  // A rejected entry becomes the last one of the queue.
  const tryAgain = (entry) =>
    train.store.changeEntry(entry, ({ id, ...stored }) => ({ ...stored, attempts: 0, rejection: null }));

  return { createEntry, add, send, list, listRejected, discard, tryAgain, problem: () => problem };
})();
