"use strict";
// A client's own workout: exercises that are picked become rows, whose numbers have buttons for less and more.
{
  const STEP_OF_TIME = 15; // seconds, of ten minutes or more a minute
  const STEPS = { reps: 1, distance: 100 };
  const AMOUNTS = { reps: "8", time: "30", distance: "100" }; // to begin with
  const form = document.querySelector("[data-own]");
  const list = form?.querySelector("[data-rows]");
  const template = document.querySelector("[data-row-template]");

  function secondsOf(text) {
    const parts = text.trim().split(":").map((part) => Number(part.replace(",", ".")));
    return parts.some(Number.isNaN) ? null : parts.reduce((sum, part) => sum * 60 + part, 0);
  }

  function clockOf(seconds) {
    if (seconds < 100) return String(seconds);
    const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    const two = (number) => String(number).padStart(2, "0");
    return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
  }

  // Change a number by a step, up or down; a time in seconds or as 27:00.
  function step(field, direction) {
    const measure = "amount" in field.dataset ? field.closest("[data-row]").querySelector("[data-measure]").value : null;
    const least = Number(field.dataset.least ?? 0);
    const value = (measure === "time" ? secondsOf(field.value) : Number(field.value.replace(",", "."))) || 0;
    const size = measure === "time" ? (value + direction >= 600 ? 60 : STEP_OF_TIME) : (STEPS[measure] ?? Number(field.dataset.step));
    const next = Math.max(least, Math.round((value + direction * size) * 100) / 100);
    field.value = measure === "time" ? clockOf(next) : String(next);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function addStepper(field) {
    const box = document.createElement("span");
    box.className = "stepper";
    field.replaceWith(box);
    const [less, more] = [-1, 1].map((direction) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "quiet", textContent: direction < 0 ? "−" : "+" });
      button.addEventListener("click", () => step(field, direction));
      return button;
    });
    box.append(less, field, more);
  }

  // Name the fields of a row for screen readers, which hear them without the heading.
  function nameFields(row) {
    const name = row.querySelector("[name$='.name']").value;
    for (const each of row.querySelectorAll("[data-row-name]")) each.textContent = name;
    const measure = row.querySelector("[data-measure]");
    measure.setAttribute("aria-label", `${name}: counted in`);
    const words = { sets: "sets", amount: measure.selectedOptions[0].text.toLowerCase(), load: "load" };
    for (const [field, word] of Object.entries(words)) {
      const input = row.querySelector(`[name$='.${field}']`);
      input.setAttribute("aria-label", `${name}: ${word}`);
      const [less, more] = input.parentElement.querySelectorAll("button");
      less?.setAttribute("aria-label", `Less: ${name}, ${word}`);
      more?.setAttribute("aria-label", `More: ${name}, ${word}`);
    }
    row.querySelector("[data-amount]").inputMode = measure.value === "time" ? "text" : "decimal";
  }

  function start(row) {
    row.querySelector("[data-remove-row]").hidden = false;
    row.querySelectorAll("input[data-step]").forEach(addStepper);
    row.querySelector("[data-measure]").addEventListener("change", ({ target }) => {
      const amount = row.querySelector("[data-amount]");
      if (target.value !== "time" || !amount.value.includes(":")) amount.value = AMOUNTS[target.value]; // 8 times are not 8 seconds
      nameFields(row);
    });
    nameFields(row);
  }

  const changed = (field) => field.dispatchEvent(new Event("change", { bubbles: true }));

  function renumber() {
    for (const [at, row] of [...list.children].entries()) {
      for (const field of row.querySelectorAll("[name]")) field.name = field.name.replace(/^rows\.\d+\./, `rows.${at}.`);
    }
  }

  function addRow(values) {
    const row = template.content.cloneNode(true).querySelector("[data-row]");
    for (const field of row.querySelectorAll("[name]")) {
      field.removeAttribute("value"); // what is typed differs from it
      const name = field.name.split(".").at(-1);
      if (values[name] !== undefined) field.value = values[name];
    }
    list.append(row);
    renumber();
    start(row);
    return row;
  }

  if (form) {
    [...list.children].forEach(start);
    const search = form.elements.unpicked;
    search.addEventListener("input", () => search.setCustomValidity(search.value.trim() ? "Pick an exercise of the list, or clear this field." : ""));
    form.addEventListener("picked", (event) => {
      event.preventDefault();
      search.setCustomValidity("");
      const { sets, measure, amount, load } = event.detail.option.dataset;
      const row = addRow({ exerciseId: event.detail.id, name: event.detail.name, sets, measure, amount, load });
      changed(row.querySelector("[name$='.sets']"));
    });
    list.addEventListener("click", (event) => {
      const button = event.target.closest("[data-remove-row]");
      if (!button) return;
      const at = [...list.children].indexOf(button.closest("[data-row]"));
      list.children[at].remove();
      renumber();
      changed(form.elements.date ?? form.querySelector("textarea"));
      const next = list.children[at] ?? list.lastElementChild;
      (next?.querySelector("[data-remove-row]") ?? form.querySelector("button:not([type=button])")).focus();
    });
    // Rows that were picked before the page was left: their values follow.
    form.addEventListener("restore", ({ detail }) => {
      const names = Object.keys(detail).filter((name) => /^rows\.\d+\.exerciseId$/.test(name));
      while (list.children.length < names.length) {
        const at = list.children.length;
        const values = ["exerciseId", "name", "sets", "measure", "amount", "load"].map((name) => [name, detail[`rows.${at}.${name}`]?.[0]]);
        addRow(Object.fromEntries(values));
      }
    });
    // A saved page has the day on which it was saved.
    const { date } = form.elements;
    const today = new Date().toLocaleDateString("sv");
    if (document.body.dataset.savedAt && date && date.value < today && !new URLSearchParams(location.search).has("date")) date.value = today;
  }
}
