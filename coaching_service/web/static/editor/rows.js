"use strict";
// The rows of planned sets in the workout editor: add, remove, fill down, and arrow keys.
const editor = {};

editor.rows = (() => {
  const all = (form) => [...form.querySelectorAll("[data-row]")];
  const visible = (form) => all(form).filter((row) => !row.hidden);
  const cellOf = (row, column) => row.querySelector(`[data-column="${column}"]`);
  const isShown = (cell) => cell !== null && cell.offsetParent !== null;
  const changed = (form) => form.dispatchEvent(new Event("change", { bubbles: true }));

  function positionOf(row) {
    return Number(row.querySelector("[name$='.index']").name.split(".")[1]);
  }

  function setNumber(row, number) {
    for (const each of row.querySelectorAll("[data-number]")) each.textContent = number;
    row.setAttribute("aria-label", `Set ${number}`);
  }

  const numberOf = (row) => Number(row.querySelector("[data-number]").textContent);

  // Copy the last set to a new row; returns the row.
  function add(form) {
    const last = visible(form).at(-1);
    if (!last) return null;
    const from = positionOf(last);
    const to = Math.max(...all(form).map(positionOf)) + 1;
    const row = last.cloneNode(true);
    for (const error of row.querySelectorAll(".error, .stored")) error.remove();
    for (const each of row.querySelectorAll("[id], [name], [for]")) {
      for (const attribute of ["id", "for"]) {
        const value = each.getAttribute(attribute);
        if (value) each.setAttribute(attribute, value.replace(new RegExp(`^([^-]+)-${from}-`), `$1-${to}-`));
      }
      if (each.name) each.name = each.name.replace(`sets.${from}.`, `sets.${to}.`);
      each.removeAttribute("aria-invalid");
      each.removeAttribute("aria-describedby");
    }
    row.querySelector("select").value = last.querySelector("select").value;
    row.querySelector("[name$='.index']").value = "";
    row.querySelector("details").open = false;
    setNumber(row, Math.max(...all(form).map(numberOf)) + 1);
    last.after(row);
    changed(form);
    return row;
  }

  // Remove a set; the row is sent as removed once, then forgotten.
  function remove(row) {
    const form = row.closest("form");
    const rows = visible(form);
    if (rows.length < 2) return;
    const neighbour = rows[rows.indexOf(row) + 1] ?? rows[rows.indexOf(row) - 1];
    row.querySelector("[name$='.out']").checked = true;
    row.hidden = true;
    if (!row.querySelector("[name$='.index']").value) row.remove();
    neighbour.querySelector("[data-remove]").focus();
    changed(form);
  }

  // Write the value of a cell into the cells below it.
  function fillDown(cell) {
    const row = cell.closest("[data-row]");
    const rows = visible(cell.form);
    for (const other of rows.slice(rows.indexOf(row) + 1)) cellOf(other, cell.dataset.column).value = cell.value;
    changed(cell.form);
  }

  const lastCells = new WeakMap();

  // Fill down from the field used last, else from the first one; returns the field.
  function fillFromLast(form) {
    const last = lastCells.get(form);
    const cell = last?.isConnected && isShown(last) ? last : [...visible(form)[0].querySelectorAll("[data-column]")].find(isShown);
    fillDown(cell);
    return cell;
  }

  // Move the focus to the first field of a row.
  function focus(row) {
    const cell = [...(row?.querySelectorAll("[data-column]") ?? [])].find(isShown);
    cell?.focus();
    cell?.select();
  }

  function move(cell, step) {
    const rows = visible(cell.form);
    const row = rows[rows.indexOf(cell.closest("[data-row]")) + step];
    const target = row && cellOf(row, cell.dataset.column);
    if (!isShown(target ?? null)) return;
    target.focus();
    target.select();
  }

  function onKey(event) {
    const cell = event.target.closest?.("[data-column]");
    if (!cell || event.altKey || event.metaKey || event.shiftKey) return;
    if (event.ctrlKey && event.key.toLowerCase() === "d") fillDown(cell);
    else if (!event.ctrlKey && event.key === "ArrowDown") move(cell, 1);
    else if (!event.ctrlKey && event.key === "ArrowUp") move(cell, -1);
    else return;
    event.preventDefault();
  }

  function start(form) {
    for (const button of form.querySelectorAll("[data-remove]")) button.hidden = false;
    for (const box of form.querySelectorAll(".remove-set")) box.hidden = true;
    const fill = form.querySelector("[data-fill]");
    if (!fill) return; // the form has no sets
    fill.hidden = false;
    form.addEventListener("keydown", onKey);
    form.addEventListener("focusin", (event) => {
      const cell = event.target.closest("[data-column]");
      if (!cell) return;
      lastCells.set(form, cell);
      fill.lastElementChild.textContent = `Fill down ${cell.labels[0].lastChild.textContent.trim()}`;
    });
    form.addEventListener("click", (event) => {
      if (event.target.closest("[data-fill]")) fillFromLast(form).focus();
      const button = event.target.closest("[data-remove]");
      if (button) remove(button.closest("[data-row]"));
    });
  }

  return { all, add, focus, start };
})();
