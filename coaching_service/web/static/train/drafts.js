// What is typed and not sent is kept while typing, and is there again after the page or the browser was closed, until the
// session ends: a page of another session, or of none, deletes it.
train.drafts = (() => {
  const DELAY = 200;
  const LIFETIME = 30 * 24 * 60 * 60 * 1000;
  const COPY = "train draft ";
  const typed = new Set();
  let timer = 0;

  const keyOf = (formId) => `${train.user} ${formId}`;
  const draftOf = (form) => ({
    key: keyOf(train.forms.idOf(form)),
    session: train.session,
    values: train.forms.read(form),
    base: train.forms.baseOf(form),
    isSet: train.forms.isSet(form),
    at: Date.now(),
  });

  // A copy is written at once: a page that is reloaded right after typing cannot wait for the database.
  function copy(form) {
    const draft = draftOf(form);
    try {
      localStorage.setItem(COPY + draft.key, JSON.stringify(draft));
    } catch {
      // without space the draft is only in the database
    }
  }

  function record(form) {
    copy(form);
    typed.add(form);
    timer ||= setTimeout(flush, DELAY);
  }

  // Write what has been typed since the last time.
  function flush() {
    clearTimeout(timer);
    timer = 0;
    const writes = [...typed].map((form) => write(draftOf(form), train.forms.isChanged(form)));
    typed.clear();
    return Promise.allSettled(writes);
  }

  // Write a draft, or remove it, and then its copy, unless more has been typed.
  async function write(draft, isChanged) {
    const copied = localStorage.getItem(COPY + draft.key);
    await (isChanged ? train.store.write("drafts", draft) : train.store.remove("drafts", draft.key));
    if (localStorage.getItem(COPY + draft.key) === copied) localStorage.removeItem(COPY + draft.key);
  }

  const isOver = (draft) => draft.session !== train.session || Date.now() - draft.at > LIFETIME;

  // Delete the drafts of sessions that have ended, and those that are too old.
  async function removeEnded() {
    for (const name of Object.keys(localStorage)) {
      if (name.startsWith(COPY) && isOver(JSON.parse(localStorage.getItem(name)))) localStorage.removeItem(name);
    }
    for (const draft of await train.store.readAll("drafts")) {
      if (isOver(draft)) await train.store.remove("drafts", draft.key);
    }
  }

  // Put the copies of this user that the database has not received into it.
  const readCopies = () =>
    Promise.allSettled(
      Object.keys(localStorage)
        .filter((name) => name.startsWith(COPY + keyOf("")))
        .map((name) => write(JSON.parse(localStorage.getItem(name)), true)),
    );

  // Every draft, also those of other users.
  async function list() {
    await flush();
    return train.store.readAll("drafts");
  }
  const isOwn = (draft) => draft.key.startsWith(keyOf(""));

  function removeCopies() {
    for (const name of Object.keys(localStorage)) if (name.startsWith(COPY)) localStorage.removeItem(name);
  }

  // The form is submitted as it is; its entry is stored next.
  const forget = (form) => typed.delete(form);
  // The form is sent by the browser, with what is typed.
  function remove(form) {
    const formId = train.forms.idOf(form);
    forget(form);
    removeCopy(formId);
    train.store.remove("drafts", keyOf(formId)).catch(() => {});
  }
  const removeCopy = (formId) => localStorage.removeItem(COPY + keyOf(formId));

  // Fill in the drafts of this page's forms, except fields for which the server has another value than when they were typed.
  async function restore() {
    const forms = new Map(train.forms.all().map((form) => [keyOf(train.forms.idOf(form)), form]));
    await removeEnded();
    await readCopies();
    for (const draft of await train.store.readAll("drafts")) {
      const form = forms.get(draft.key);
      if (form) {
        form.dispatchEvent(new CustomEvent("restore", { detail: draft.values })); // it may need more fields
        const base = train.forms.baseOf(form);
        const unchanged = Object.entries(draft.values).filter(([name]) => train.forms.isSame(base[name], draft.base[name]));
        train.forms.write(form, Object.fromEntries(unchanged));
        train.sets.updateButton(form);
      }
      if (form && !train.forms.isChanged(form)) await train.store.remove("drafts", draft.key);
    }
  }

  return { keyOf, record, flush, list, isOwn, forget, remove, restore, removeCopy, removeCopies, removeEnded };
})();
