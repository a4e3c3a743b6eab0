"use strict";
// Comfort only: every page works without it.

// What is wrong is read out and scrolled to first.
document.querySelector("[data-focus]")?.focus();

// A form pressed twice is sent once. Pressed again after a while it is sent again: the first time may have been stopped.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (Date.now() - form.dataset.sent < 3000) return event.preventDefault();
  form.dataset.sent = Date.now();
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

// A new company is where its owner's browser is.
for (const zone of document.querySelectorAll("[data-zone]")) {
  zone.value ||= Intl.DateTimeFormat().resolvedOptions().timeZone;
}

// A secret is copied by a press.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

// The list of clients says how many are chosen.
for (const form of document.querySelectorAll("[data-choose]")) {
  const told = form.querySelector("[data-chosen]");
  form.addEventListener("change", () => {
    const count = form.querySelectorAll("[name=ids]:checked").length;
    told.textContent = form.elements.all.checked ? "All are chosen" : count ? `${count} chosen` : "";
  });
}

// An item is dragged to its new place: the same form is sent that its "Move" shows.
let dragged = null;
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-item]") ?? null;
});
document.addEventListener("dragover", (event) => {
  const block = dragged && event.target.closest("[data-block]");
  for (const other of document.querySelectorAll(".over")) if (other !== block) other.classList.remove("over");
  if (!block) return;
  event.preventDefault();
  block.classList.add("over");
});
document.addEventListener("drop", (event) => {
  const block = dragged && event.target.closest("[data-block]");
  if (!block) return;
  event.preventDefault();
  const form = dragged.querySelector("form");
  const items = [...block.querySelectorAll("[data-item]")].filter((item) => item !== dragged);
  const before = items.filter((item) => item.getBoundingClientRect().bottom < event.clientY).length;
  form.elements.target.value = block.dataset.block;
  form.elements.place.value = before + 1;
  form.requestSubmit();
});
