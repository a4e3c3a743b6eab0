"use strict";
// Search from every page: the field in the header opens a dialog, which shows results while one types. Without this
// script the field opens the page of results.
{
  const field = document.querySelector("[data-find]"), dialog = document.getElementById("find");
  const input = dialog?.querySelector("input"), list = dialog?.querySelector("[role=listbox]"), status = dialog?.querySelector("[role=status]");
  const recent = `recent-${dialog?.dataset.user}`, kept = 8;
  let options = [], at = -1, waiting, running;

  const read = () => { try { return JSON.parse(localStorage.getItem(recent)) ?? []; } catch { return []; } };

  function remember(link) {
    if (link.dataset.kind === "command") return;
    const entry = { href: link.getAttribute("href"), title: link.querySelector("b").textContent, of: link.querySelector(".of")?.textContent };
    localStorage.setItem(recent, JSON.stringify([entry, ...read().filter((each) => each.href !== entry.href)].slice(0, kept)));
  }

  function mark(next) {
    options[at]?.removeAttribute("aria-selected");
    at = next;
    const option = options[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  // The sections of the page of results become groups of options.
  function show(found) {
    for (const section of found.querySelectorAll("section")) {
      section.setAttribute("role", "group");
      section.querySelector("h2").setAttribute("role", "presentation");
      section.querySelector("ul").setAttribute("role", "none");
      for (const item of section.querySelectorAll("li")) item.setAttribute("role", "none");
    }
    options = [...found.querySelectorAll("a")];
    options.forEach((option, number) => Object.assign(option, { id: `option-${number}`, role: "option", tabIndex: -1 }));
    list.replaceChildren(...found.querySelectorAll("section"));
    list.hidden = !options.length;
    input.setAttribute("aria-expanded", String(options.length > 0));
    const none = found.querySelector(".none")?.textContent;
    status.textContent = none ?? "";
    mark(input.value.trim() && options.length ? 0 : -1);
  }

  function withRecent(found) {
    const entries = read();
    if (!entries.length) return found;
    const section = document.createElement("section"), title = document.createElement("h2"), items = document.createElement("ul");
    title.textContent = "Recent";
    title.id = "found-recent";
    section.setAttribute("aria-labelledby", title.id);
    for (const entry of entries) {
      const link = document.createElement("a"), name = document.createElement("b"), of = document.createElement("span"), item = document.createElement("li");
      link.href = entry.href;
      name.textContent = entry.title;
      of.textContent = entry.of ?? "";
      of.className = "of";
      link.append(name, " ", of);
      item.append(link);
      items.append(item);
    }
    section.append(title, items);
    found.prepend(section);
    return found;
  }

  async function search() {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    try {
      const response = await fetch(`/app/search?${new URLSearchParams({ q: input.value })}`, { signal });
      if (!response.ok || response.redirected) throw new Error(response.statusText);
      const found = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[data-found]");
      if (signal.aborted) return;
      show(input.value.trim() ? found : withRecent(found));
    } catch (error) {
      if (error.name !== "AbortError") status.textContent = "The search could not be reached. Press Enter to try again.";
    }
  }

  function open(text = "") {
    if (dialog.open) return input.select();
    input.value = text;
    dialog.showModal();
    input.focus();
    search();
  }

  if (dialog && field) {
    field.addEventListener("click", (event) => { event.preventDefault(); open(field.value); });
    field.addEventListener("input", () => { open(field.value); field.value = ""; });
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
      const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k";
      const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping && localStorage.getItem("keys") !== "off";
      if (event.isComposing || (!isCommand && !isSlash) || document.querySelector("dialog[open]:not(#find)")) return;
      event.preventDefault();
      open();
    });
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 120);
    });
    input.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") { // which would only empty a field of this type
        event.preventDefault();
        return dialog.close();
      }
      if (!options.length) return;
      const last = options.length - 1;
      const next = { ArrowDown: at >= last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1 }[event.key];
      if (next !== undefined) {
        event.preventDefault();
        mark(next);
      } else if (event.key === "Enter" && at >= 0) {
        event.preventDefault();
        options[at].click();
      }
    });
    list.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (!link) return;
      const url = new URL(link.href);
      if (url.pathname === "/app/search") { // a command that is completed here
        event.preventDefault();
        input.value = `${url.searchParams.get("q").trim()} `;
        input.focus();
        return search();
      }
      remember(link);
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) dialog.close();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  // Who has signed out leaves no names behind.
  if (document.body.classList.contains("outside")) {
    for (const key of Object.keys(localStorage)) if (key.startsWith("recent-")) localStorage.removeItem(key);
  }
}
