// Start the editor on the page: cards save themselves; other forms and links wait until they have.
(() => {
  if (!document.getElementById("items")) return;
  let isLeaving = false;
  const items = () => [...document.querySelectorAll("#items [data-item]")];

  // Start what is in the list of items, which is replaced when items are added or moved.
  function startItems() {
    for (const tip of document.querySelectorAll("[data-tip]")) tip.hidden = false;
    for (const form of document.querySelectorAll("form[data-card]")) {
      editor.rows.start(form);
      editor.saving.start(form);
      form.querySelector(".save-card").hidden = true;
    }
    for (const hidden of document.querySelectorAll(".type-ahead .field[hidden]")) hidden.hidden = false;
    for (const button of document.querySelectorAll(".type-ahead [data-search]")) button.hidden = true;
    startDragging();
  }

  // Runs before the listeners of the page, so that a form is not counted as sent while it waits.
  window.addEventListener(
    "submit",
    (event) => {
      const form = event.target;
      const button = event.submitter;
      if (form.matches("[data-card]") && button?.dataset.whole === undefined) {
        event.preventDefault();
        event.stopImmediatePropagation();
        if (button?.matches("[data-add]")) editor.rows.focus(editor.rows.add(form));
        else editor.saving.save(form);
      } else if (form.matches("[data-card]")) {
        isLeaving = true;
      } else if (form.method === "post" && editor.saving.dirty().length && !isLeaving) {
        event.preventDefault();
        event.stopImmediatePropagation();
        editor.saving.flush().then((isSaved) => (isSaved ? form.requestSubmit(button) : editor.saving.show()));
      }
    },
    true,
  );

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if ("discard" in link.dataset) {
      event.preventDefault();
      isLeaving = true;
      location.reload();
    } else if (!link.getAttribute("href").startsWith("#") && editor.saving.dirty().length) {
      event.preventDefault();
      editor.saving.flush().then((isSaved) => (isSaved || confirm("Some changes are not saved. Leave the page?")) && leave(link.href));
    }
  });

  function leave(address) {
    isLeaving = true;
    location.assign(address);
  }

  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && editor.saving.flush());
  window.addEventListener("beforeunload", (event) => {
    if (!isLeaving && editor.saving.dirty().length) event.preventDefault();
  });
  window.addEventListener("online", () => editor.saving.flush());

  // The list of items is replaced by htmx; no card is saved meanwhile, since all cards share a version.
  let release = () => {};
  let known = new Set(); // the items before
  let source = null; // the item whose form was sent
  let columns = []; // the columns that were shown by "Columns"
  const isOfItems = (detail) => detail.target?.id === "items";

  function setVersion(page) {
    const version = page.getElementById("items")?.dataset.version;
    if (version) for (const field of document.querySelectorAll("input[name=version]")) field.value = version;
  }

  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    if (!isOfItems(detail)) return;
    known = new Set(items().map((item) => item.id));
    source = detail.requestConfig.elt.closest("[data-entry], [data-item]")?.id ?? null;
    editor.saving.hold(new Promise((resolve) => (release = resolve)));
  });
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!isOfItems(detail) || !detail.shouldSwap) return;
    columns = [...document.querySelectorAll("#items .columns-menu input:checked")].map((box) => box.id);
    if (!editor.saving.dirty().length) return;
    // Something was typed meanwhile: it is saved with the new version before the list is read again.
    detail.shouldSwap = false;
    setVersion(new DOMParser().parseFromString(detail.xhr.responseText, "text/html"));
    release();
    editor.saving.flush().then((isSaved) => isSaved && location.reload());
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!isOfItems(detail)) return;
    release();
    if (!detail.successful || document.getElementById("items").contains(detail.requestConfig.elt)) return;
    setVersion(document);
    startItems();
    for (const id of columns) document.getElementById(id)?.click();
    const added = items().find((item) => !known.has(item.id));
    const place = added ?? document.getElementById(source);
    const field = added && [...added.querySelectorAll("[data-column]")].find((each) => each.offsetParent !== null);
    (field ?? place?.querySelector(".menu > summary") ?? document.getElementById("type-ahead"))?.focus();
    field?.select();
  });

  // An exercise that is picked is added.
  document.addEventListener("picked", (event) => {
    if (!("adds" in event.target.dataset)) return;
    event.preventDefault();
    const chosen = document.getElementById("chosen-exercise");
    chosen.elements.exerciseId.value = event.detail.id;
    chosen.requestSubmit();
  });

  // Drag a card by its grip: sends the card's form that moves it, with the new position.
  function startDragging() {
    const list = document.querySelector("[data-sorted]");
    if (!list?.querySelector("form.step")) return;
    for (const grip of list.querySelectorAll("[data-grip]")) grip.hidden = false;
    Sortable.create(list, {
      handle: "[data-grip]",
      draggable: "[data-item]",
      forceFallback: true, // the same for mouse and touch
      fallbackTolerance: 3,
      animation: 150,
      onEnd(event) {
        if (event.oldIndex === event.newIndex) return;
        const form = event.item.querySelector("form.step");
        form.elements.place.value = event.newIndex + 1;
        form.requestSubmit();
      },
    });
  }

  startItems();
})();
