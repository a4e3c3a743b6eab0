"use strict";
// The pages for clients. Every page works without these scripts, which web/static_files.py joins into one file.
const train = { user: document.body.dataset.user, session: document.body.dataset.session };

// The database on this device: forms that are not sent or were rejected, drafts, and small states such as the rest timer.
train.store = (() => {
  const NAME = "train";
  const PAGES = "train-pages"; // of the service worker
  let opening = null;
  let isClosed = false;

  function open() {
    if (isClosed) return Promise.reject(new Error("signed out"));
    opening ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(NAME, 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore("entries", { keyPath: "id", autoIncrement: true });
        request.result.createObjectStore("drafts", { keyPath: "key" });
        request.result.createObjectStore("states", { keyPath: "key" });
      };
      request.onsuccess = () => {
        const database = request.result;
        const close = () => {
          database.close();
          opening = null;
        };
        database.onversionchange = close; // another tab deletes it
        database.onclose = () => (opening = null);
        resolve(database);
      };
      request.onerror = () => reject(request.error);
    }).catch((error) => {
      opening = null;
      throw error;
    });
    return opening;
  }

  // Call `work` with the stores in one transaction; resolves when it is written, with the result of the request it returns.
  // `commit`: `work` makes no further requests, so it is written even if the page is left now.
  async function run(mode, names, work, { commit = false } = {}) {
    const database = await open();
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(names, mode, { durability: "strict" });
      const request = work(...names.map((name) => transaction.objectStore(name)));
      if (commit) transaction.commit?.();
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  // Every entry in the order of creation, of this user and of others.
  const readEntries = () => run("readonly", ["entries"], (entries) => entries.getAll());

  // Add an entry, in the place of those that `isReplaced`, and remove the draft it was typed as.
  const addEntry = (entry, isReplaced) =>
    run("readwrite", ["entries", "drafts"], (entries, drafts) => {
      const stored = entries.getAll();
      stored.onsuccess = () => {
        for (const old of stored.result) if (isReplaced(old)) entries.delete(old.id);
        entries.add(entry);
        drafts.delete(train.drafts.keyOf(entry.formId));
        entries.transaction.commit?.();
      };
    });

  // Change an entry, or remove it if `change` returns null; nothing if it is gone or another has its number.
  const changeEntry = (entry, change) =>
    run("readwrite", ["entries"], (entries) => {
      const stored = entries.get(entry.id);
      stored.onsuccess = () => {
        if (stored.result?.token !== entry.token) return;
        const changed = change(stored.result);
        entries.delete(entry.id);
        if (changed) entries.put(changed);
      };
    });

  const read = (name, key) => run("readonly", [name], (store) => store.get(key));
  const readAll = (name) => run("readonly", [name], (store) => store.getAll());
  const write = (name, value) => run("readwrite", [name], (store) => store.put(value), { commit: true });
  const remove = (name, key) => run("readwrite", [name], (store) => store.delete(key), { commit: true });

  // Delete everything, also if another tab keeps the database open.
  async function wipe() {
    train.drafts.removeCopies();
    const names = ["entries", "drafts", "states"];
    await run("readwrite", names, (...stores) => stores.forEach((store) => store.clear()));
    (await open()).close();
    close();
    for (const name of [NAME, PAGES]) {
      await new Promise((resolve) => {
        const request = indexedDB.deleteDatabase(name);
        request.onsuccess = request.onerror = request.onblocked = resolve;
      });
    }
  }

  // After signing out this page writes nothing more.
  function close() {
    isClosed = true;
    opening = null;
  }

  return { readEntries, addEntry, changeEntry, read, readAll, write, remove, wipe, close };
})();
