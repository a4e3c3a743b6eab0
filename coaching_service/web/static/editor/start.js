// Start the editor on the page: cards save themselves; other forms and links wait until they have.
(() => {
  const forms = [...document.querySelectorAll("form[data-card]")];
  if (!forms.length) return;
  let isLeaving = false;
  for (const tip of document.querySelectorAll("[data-tip]")) tip.hidden = false;
  for (const form of forms) {
    editor.rows.start(form);
    editor.saving.start(form);
    form.querySelector(".save-card").hidden = true;
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
})();

// Drag a card by its grip: submits the card's "Move" form with the new position.
(() => {
  const list = document.querySelector("[data-sorted]");
  if (!list || !list.querySelector("[data-grip]")) return;
  for (const grip of list.querySelectorAll("[data-grip]")) grip.hidden = false;
  Sortable.create(list, {
    handle: "[data-grip]",
    draggable: "li.card",
    forceFallback: true, // the same for mouse and touch
    fallbackTolerance: 3,
    animation: 150,
    onEnd(event) {
      if (event.oldIndex === event.newIndex) return;
      const form = event.item.querySelector(".move-form");
      form.elements.place.value = event.newIndex + 1;
      form.requestSubmit();
    },
  });
})();
