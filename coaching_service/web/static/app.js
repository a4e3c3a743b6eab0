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

// What has happened is said for five seconds after a sign of a reader, and longer with the pointer or the focus on it.
function readToast() {
  const toast = document.querySelector(".toast:not([data-read])");
  if (!toast) return;
  toast.dataset.read = "";
  const leave = () => (toast.matches(":hover, :focus-within") ? setTimeout(leave, 1000) : (toast.dataset.gone = ""));
  setTimeout(leave, 5000);
}
for (const kind of ["pointermove", "pointerdown", "keydown", "scroll"]) document.addEventListener(kind, readToast, { passive: true });
// Screen readers say what is added.
setTimeout(() => {
  for (const said of document.querySelectorAll(".toast [role=status]")) said.replaceChildren(...said.childNodes);
}, 300);

// A sheet closes by its button and by Escape.
for (const button of document.querySelectorAll("[data-close]")) button.hidden = false;
document.addEventListener("click", (event) => {
  const sheet = event.target.closest("[data-close]")?.closest("details");
  if (!sheet) return;
  sheet.open = false;
  sheet.firstElementChild.focus();
});
document.addEventListener("keydown", (event) => {
  const sheet = event.key === "Escape" && !event.defaultPrevented && document.querySelector(".sheet[open]");
  if (!sheet || document.querySelector("dialog[open], .menu[open]")) return;
  sheet.open = false;
  sheet.firstElementChild.focus();
});

// A video of another site is loaded when it is asked for.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-film]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const frame = document.createElement("iframe");
  Object.assign(frame, { title: link.title, allow: "autoplay; fullscreen; picture-in-picture", referrerPolicy: "strict-origin-when-cross-origin" });
  frame.src = link.dataset.film;
  link.replaceWith(frame);
  frame.focus();
});

// The current one of tabs that do not fit is in view.
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const row = tab.parentElement;
  row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}

// The selection of clients (clients.js) ends when something has been done with it.
if (document.querySelector("[data-selection-ends]")) sessionStorage.removeItem("selection");

// Ctrl+Enter sends a message.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
  const box = event.target;
  if (!box.matches?.("[data-send]")) return;
  event.preventDefault();
  box.form.requestSubmit(box.form.querySelector("button:not([type=button])"));
});

// A template is inserted where the cursor is; its link leads to the page with its text.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-insert]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const response = await fetch(link.href).catch(() => null);
  const page = response?.ok && new DOMParser().parseFromString(await response.text(), "text/html");
  const find = (root) => root.querySelector(`textarea[name=${link.dataset.insert}]`);
  const box = find(document);
  if (!page || response.redirected || !find(page)) return location.assign(link.href);
  link.closest("details").open = false;
  box.focus();
  box.setRangeText(find(page).value, box.selectionStart, box.selectionEnd, "end");
});

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

