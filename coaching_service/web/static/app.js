"use strict";
// Comfort only: every page works without it.

// What is wrong is read out and scrolled to first.
document.querySelector("[data-focus]")?.focus();

// A form is sent once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "yes";
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
