"use strict";
// The list of clients who need a coach: keys, and where the focus goes when a client leaves the list.
{
  const entries = () => [...document.querySelectorAll("[data-entry]")];
  const current = () => document.activeElement.closest("[data-entry]");
  const open = new Map(); // the details that were open in the entry that is being replaced
  let place = 0;

  function focus(entry) {
    if (entry) return entry.focus();
    const main = document.getElementById("main");
    main.focus();
  }

  function move(by) {
    const all = entries(), at = all.indexOf(current());
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
    if (next < all.length) return focus(all[Math.max(0, next)]);
    document.querySelector("#more a")?.focus();
  }

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!detail.target.matches("[data-entry]")) return;
    place = entries().indexOf(detail.target);
    for (const each of detail.target.querySelectorAll("details.about")) open.set(each.id, each.open);
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => {
    if (!detail.successful || !detail.target?.matches("[data-entry]")) return;
    const replaced = document.getElementById(detail.target.id);
    for (const each of replaced?.querySelectorAll("details.about") ?? []) each.open = open.get(each.id) ?? false;
    open.clear();
    focus(replaced ?? entries()[place] ?? entries().at(-1));
    if (entries().length === 0) document.querySelector("#more a")?.click();
  });

  const actions = {
    j: () => move(1),
    k: () => move(-1),
    e: () => current()?.querySelector("[data-dismiss]")?.click(),
    s() {
      const menu = current()?.querySelector(".menu");
      if (!menu) return;
      menu.open = true;
      menu.querySelector("button").focus();
    },
    p() {
      const previews = [...(current()?.querySelectorAll("details.about") ?? [])];
      const shows = previews.some((each) => !each.open);
      for (const each of previews) each.open = shows;
    },
    Enter: () => document.activeElement.matches("[data-entry]") && current().querySelector("[data-open]")?.click(),
    "?": () => keys?.showModal(),
  };

  const keys = document.getElementById("keys"), key = "keys", isOn = keys?.querySelector("[data-keys-on]");
  if (isOn) {
    isOn.checked = localStorage.getItem(key) !== "off";
    isOn.addEventListener("change", () => localStorage.setItem(key, isOn.checked ? "on" : "off"));
    for (const button of document.querySelectorAll("[data-keys]")) {
      button.hidden = false;
      button.addEventListener("click", () => keys.showModal());
    }
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || keys?.open || !actions[event.key]) return;
    if (event.target.closest("input, textarea, select, [contenteditable]") || (!isOn?.checked && event.key !== "?")) return;
    if (event.key === "Enter" && !event.target.matches("[data-entry]")) return;
    event.preventDefault();
    actions[event.key]();
  });
}
