"use strict";
// The list of clients: a selection that is kept from page to page, and a search without empty parameters in the URL.
{
  const MOST = 250; // longer addresses are refused

  function restore() {
    const form = document.querySelector("[data-choose]"), bar = form?.querySelector("[data-bar]");
    if (!bar) return;
    const key = `chosen-${form.dataset.choose}`, all = form.elements.all, output = form.querySelector("[data-chosen]");
    const chosen = new Set(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
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

    for (const box of boxes) box.checked = chosen.has(box.value);
    form.querySelector("[data-clear]").hidden = false;
    form.querySelector("[data-clear]").addEventListener("click", () => {
      chosen.clear();
      sessionStorage.removeItem(key);
      for (const box of boxes) box.checked = false;
      all.checked = false;
      show();
      boxes[0].focus();
    });
    form.addEventListener("change", () => {
      for (const box of boxes) chosen[box.checked ? "add" : "delete"](box.value);
      sessionStorage.setItem(key, JSON.stringify([...chosen]));
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
      sessionStorage.removeItem(key);
    });
    show();
  }

  document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (!detail.elt.matches("[data-filter]")) return;
    for (const [name, value] of [...detail.formData]) {
      if (!value || (name === "sort" && value === "name")) detail.formData.delete(name);
    }
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (detail.successful && detail.target?.id === "clients") restore();
  });
  window.addEventListener("pageshow", restore);
}
