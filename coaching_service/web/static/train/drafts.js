// What is typed and not sent is kept while typing, and is there again after the page or the browser was closed.
train.drafts = (() => {
  const DELAY = 200;
  const LIFETIME = 30 * 24 * 60 * 60 * 1000;
  const typed = new Set();
  let timer = 0;

  const keyOf = (formId) => `${train.user} ${formId}`;

  function record(form) {
    typed.add(form);
    timer ||= setTimeout(flush, DELAY);
  }

  // Write what has been typed since the last time.
  function flush() {
    clearTimeout(timer);
    timer = 0;
    const writes = [...typed].map((form) => {
      const key = keyOf(train.forms.idOf(form));
      if (!train.forms.isChanged(form)) return train.store.remove("drafts", key);
      const draft = { key, values: train.forms.read(form), base: train.forms.baseOf(form), at: Date.now() };
      return train.store.write("drafts", draft);
    });
    typed.clear();
    return Promise.allSettled(writes);
  }

  // The form is submitted as it is.
  const forget = (form) => typed.delete(form);

  // Fill in the drafts of this page's forms, except fields for which the server has another value than when they were typed.
  async function restore() {
    const forms = new Map(train.forms.all().map((form) => [keyOf(train.forms.idOf(form)), form]));
    for (const draft of await train.store.readAll("drafts")) {
      const form = forms.get(draft.key);
      if (form) {
        const base = train.forms.baseOf(form);
        const unchanged = Object.entries(draft.values).filter(([name]) => train.forms.isSame(base[name], draft.base[name]));
        train.forms.write(form, Object.fromEntries(unchanged));
        train.sets.updateButton(form);
      }
      const isOver = Date.now() - draft.at > LIFETIME || (form && !train.forms.isChanged(form));
      if (isOver) await train.store.remove("drafts", draft.key);
    }
  }

  return { keyOf, record, flush, forget, restore };
})();
