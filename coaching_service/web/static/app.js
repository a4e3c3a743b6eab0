"use strict";
// Enhancements only: every page works without this script.

// Focus the error summary, so that it is announced and scrolled to.
document.querySelector("[data-focus]")?.focus();

// Ignore a second submission within three seconds (double click). Later ones are sent: the first may have been interrupted.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (Date.now() - form.dataset.sent < 3000) return event.preventDefault();
  form.dataset.sent = Date.now();
});
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

// Close a menu by Escape, or by a click or the focus outside of it.
function closeMenus(event) {
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (event.type !== "keydown" && menu.contains(event.target)) continue;
    if (event.type === "keydown" && menu.contains(document.activeElement)) menu.firstElementChild.focus();
    menu.open = false;
  }
}
document.addEventListener("click", closeMenus);
document.addEventListener("focusin", closeMenus);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus(event);
});

// The selection of clients ends on leaving their list (clients.js).
if (!document.querySelector("[data-choose]")) sessionStorage.removeItem("selection");

// Propose the browser's time zone at sign-up, and send it at the first access of a client.
for (const zone of document.querySelectorAll("[data-zone]")) {
  zone.value ||= Intl.DateTimeFormat().resolvedOptions().timeZone;
}

// Copy buttons.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

