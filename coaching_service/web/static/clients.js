"use strict";
// The list of clients: a selection over the pages of one filter.
// Another filter ends the selection here, what is done with it in app.js.
{
  const KEY = "selection", MOST = 250; // longer addresses are refused

  function load(filter) {
    const stored = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
    return stored.filter === filter ? stored : { ids: [], isAll: false };
  }

  function save(filter, ids, isAll) {
    if (ids.size || isAll) sessionStorage.setItem(KEY, JSON.stringify({ filter, ids: [...ids], isAll }));
    else sessionStorage.removeItem(KEY);
  }

  function restore() {
    const form = document.querySelector("[data-choose]"), bar = form?.querySelector("[data-bar]");
    if (!bar) return sessionStorage.removeItem(KEY);
    const filter = form.dataset.choose, all = form.elements.all, output = form.querySelector("[data-chosen]");
    const stored = load(filter), chosen = new Set(stored.ids);
    save(filter, chosen, stored.isAll);
    const boxes = [...form.querySelectorAll("[name=ids]")];
    const here = () => boxes.filter((box) => box.checked).length;

    function show() {
      const elsewhere = chosen.size - here();
      bar.hidden = !chosen.size && !all.checked;
      output.textContent = all.checked
        ? "All selected"
        : chosen.size > MOST
          ? `${chosen.size} selected: at most ${MOST}, or all`
          : `${chosen.size} selected${elsewhere ? `, ${elsewhere} on other pages` : ""}`;
    }

    all.checked = Boolean(stored.isAll);
    for (const box of boxes) box.checked = chosen.has(box.value);
    form.querySelector("[data-clear]").hidden = false;
    form.querySelector("[data-clear]").addEventListener("click", () => {
      chosen.clear();
      save(filter, chosen, false);
      for (const box of boxes) box.checked = false;
      all.checked = false;
      show();
      boxes[0].focus();
    });
    form.addEventListener("change", () => {
      for (const box of boxes) chosen[box.checked ? "add" : "delete"](box.value);
      save(filter, chosen, all.checked);
      show();
    });
    form.addEventListener("submit", (event) => {
      if (!all.checked && chosen.size > MOST) return event.preventDefault();
      const shown = new Set(boxes.map((box) => box.value));
      for (const id of all.checked ? [] : chosen) {
        if (shown.has(id)) continue;
        const field = document.createElement("input");
        Object.assign(field, { type: "hidden", name: "ids", value: id });
        form.append(field);
      }
    });
    show();
  }

  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.successful && detail.target?.id === "clients") restore();
  });
  window.addEventListener("pageshow", restore);
}
