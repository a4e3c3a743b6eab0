"use strict";
// Fields that pick an exercise: each [data-picker] suggests exercises while a name is typed, recent ones first. A choice is
// the event "picked" with the option; unless it is handled, the name is written into the field.
const picker = (() => {
  const REST = 120;
  const RECENT = "recent exercises";
  const KEPT = 8;

  function readRecent() {
    try {
      return JSON.parse(localStorage.getItem(RECENT)) ?? [];
    } catch {
      return [];
    }
  }

  function note(id) {
    try {
      localStorage.setItem(RECENT, JSON.stringify([id, ...readRecent().filter((each) => each !== id)].slice(0, KEPT)));
    } catch {
      // without space nothing is remembered
    }
  }

  // An option of the list, of an exercise on the page of results.
  function optionOf(entry, box) {
    const option = document.createElement("li");
    option.setAttribute("role", "option");
    Object.assign(option.dataset, entry.dataset);
    option.id = `${box.querySelector("input").id}-${entry.dataset.exercise}`;
    option.append(...(entry.querySelector("a") ?? entry).cloneNode(true).childNodes);
    return option;
  }

  function start(box) {
    if (box.dataset.isStarted) return;
    box.dataset.isStarted = "true";
    const field = box.querySelector("input:not([type=hidden])");
    const hidden = box.querySelector("input[type=hidden]"); // the identifier of what is picked
    const list = box.querySelector("[role=listbox]");
    const status = box.querySelector("[role=status]");
    const combobox = new Combobox(field, list, { tabInsertsSuggestions: false });
    let isOpen = false;
    let isAwaited = false; // Enter was pressed before the suggestions for the text arrived
    let shown = list.children.length ? "" : null; // the text whose suggestions are in the list
    let request = null;
    let timer = 0;
    const first = [...list.children]; // those for no text, if the page has them
    const text = () => field.value.trim();

    function close() {
      clearTimeout(timer);
      isAwaited = false;
      if (!isOpen) return;
      isOpen = false;
      combobox.stop();
      list.hidden = true;
    }

    function open() {
      if (document.activeElement !== field) return;
      const count = list.children.length;
      status.textContent = count ? `${count} exercises, use the arrow keys` : "No exercise found";
      if (!count) return close();
      combobox.firstOptionSelectionMode = text() ? "active" : "none";
      list.hidden = false;
      if (isOpen) combobox.resetSelection();
      else combobox.start();
      isOpen = true;
      if (isAwaited) list.firstElementChild.click();
    }

    async function load() {
      const wanted = text();
      request?.abort();
      if (wanted === shown) return open();
      if (!wanted && first.length) {
        list.replaceChildren(...first);
        shown = wanted;
        return open();
      }
      request = new AbortController();
      const query = new URLSearchParams([["keywords", wanted], ...readRecent().map((id) => ["recent", id])]);
      try {
        const response = await fetch(`${box.dataset.picker}?${query}`, { signal: request.signal });
        if (response.redirected) return location.reload(); // the session has ended
        if (!response.ok) throw new Error(response.status);
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        list.replaceChildren(...[...page.querySelectorAll("li[data-exercise]")].map((entry) => optionOf(entry, box)));
        shown = wanted;
        open();
      } catch (error) {
        if (error.name === "AbortError") return;
        const words = wanted.toLowerCase().split(/\s+/); // of those that the page has, while there is no connection
        list.replaceChildren(...first.filter((each) => words.every((word) => each.textContent.toLowerCase().includes(word))));
        shown = list.children.length ? wanted : null;
        if (shown !== null) return open();
        close();
        status.textContent = "The exercises could not be loaded. Try again.";
      }
    }

    function schedule() {
      clearTimeout(timer);
      timer = setTimeout(load, REST);
    }

    function pick(option) {
      const { exercise: id, name } = option.dataset;
      note(id);
      shown = null;
      const event = new CustomEvent("picked", { bubbles: true, cancelable: true, detail: { id, name, option } });
      if (box.dispatchEvent(event)) {
        field.value = name;
        if (hidden) hidden.value = id;
        field.dispatchEvent(new Event("change", { bubbles: true }));
        return close();
      }
      field.value = "";
      close();
    }

    // Before the keys of the combobox, which is started later.
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return close();
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "ArrowDown" && !isOpen) load();
      if (event.key !== "Enter" || hidden?.value) return; // what is picked is sent
      if (text() === shown && (isOpen || !list.children.length)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!text()) return;
      isAwaited = true;
      clearTimeout(timer);
      load();
    });
    field.addEventListener("input", () => {
      isAwaited = false;
      if (hidden) hidden.value = "";
      schedule();
    });
    field.addEventListener("focus", schedule);
    field.addEventListener("click", () => isOpen || schedule());
    field.addEventListener("blur", close);
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    list.addEventListener("combobox-commit", (event) => pick(event.target.closest("[data-exercise]")));
    if (document.activeElement === field) schedule(); // it was tapped before the script had started
  }

  const startAll = () => document.querySelectorAll("[data-picker]").forEach(start);
  startAll();
  document.addEventListener("htmx:afterSettle", startAll);

  return { start };
})();
