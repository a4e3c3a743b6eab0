"use strict";
// A file that is imported: each name of an exercise gets a field that searches for what it means.
{
  const REST = 200;
  const table = document.querySelector("[data-name-search]");

  async function find(keywords, signal) {
    const response = await fetch(`${table.dataset.nameSearch}?${new URLSearchParams({ keywords })}`, { signal });
    if (response.redirected) return location.reload(); // the session has ended
    if (!response.ok) throw new Error(response.status);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    return [...page.querySelectorAll("[data-exercise]")].map((each) => new Option(each.textContent, each.dataset.exercise));
  }

  function addSearch(select) {
    const name = select.closest("tr").querySelector("input").value;
    const usual = [...select.options];
    const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "Search…", autocomplete: "off" });
    const status = Object.assign(document.createElement("span"), { className: "hidden-text" });
    let timer = 0, request = null;
    field.setAttribute("aria-label", `Search an exercise for ${name}`);
    status.setAttribute("role", "status");
    select.after(field, status);

    async function search() {
      const keywords = field.value.trim();
      request?.abort();
      if (!keywords) return select.replaceChildren(...usual);
      request = new AbortController();
      try {
        const found = await find(keywords, request.signal);
        if (!found) return;
        const chosen = select.selectedOptions[0];
        const others = usual.filter((each) => !found.some((one) => one.value === each.value));
        select.replaceChildren(...found, ...others);
        (found[0] ?? chosen).selected = true;
        status.textContent = found.length ? `${found.length} found, ${found[0].textContent} is chosen` : "No exercise found";
      } catch (error) {
        if (error.name !== "AbortError") status.textContent = "The exercises could not be loaded. Try again.";
      }
    }

    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, REST);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // which would begin the import
      clearTimeout(timer);
      search();
    });
  }

  if (table) for (const select of table.querySelectorAll("select")) addSearch(select);
}
