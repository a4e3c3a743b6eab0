// Suggests exercises while a name is typed, those that the company uses most first. Enter or a click adds one.
editor.typeAhead = (() => {
  const REST = 120;

  function start(form) {
    const field = form.elements.keywords;
    const list = form.querySelector("[role=listbox]");
    const status = form.querySelector("[role=status]");
    const chosen = document.getElementById("chosen-exercise");
    const combobox = new Combobox(field, list, { tabInsertsSuggestions: false });
    let isOpen = false;
    let isAwaited = false; // Enter was pressed before the suggestions for the text arrived
    let shown = null; // the text whose suggestions are in the list
    let request = null;
    let timer = 0;
    const text = () => field.value.trim();

    for (const hidden of form.querySelectorAll(".field[hidden]")) hidden.hidden = false;
    form.querySelector("button").hidden = true;

    function close() {
      clearTimeout(timer);
      isAwaited = false;
      if (!isOpen) return;
      isOpen = false;
      combobox.stop();
      list.hidden = true;
    }

    function open() {
      if (document.activeElement !== field) return;
      const count = list.children.length;
      status.textContent = count ? `${count} exercises, use the arrow keys` : "No exercise found";
      if (!count) return close();
      combobox.firstOptionSelectionMode = text() ? "active" : "none";
      list.hidden = false;
      if (isOpen) combobox.resetSelection();
      else combobox.start();
      isOpen = true;
      if (isAwaited) list.firstElementChild.click();
    }

    function optionOf(radio) {
      const option = document.createElement("li");
      option.id = `suggestion-${radio.value}`;
      option.setAttribute("role", "option");
      option.dataset.exercise = radio.value;
      option.append(...radio.labels[0].cloneNode(true).childNodes);
      return option;
    }

    async function load() {
      const wanted = text();
      request?.abort();
      if (wanted === shown) return open();
      request = new AbortController();
      const signal = request.signal;
      try {
        const response = await fetch(`${form.dataset.typeAhead}?${new URLSearchParams({ keywords: wanted })}`, { signal });
        if (response.redirected) return location.reload(); // the session has ended
        if (!response.ok) throw new Error(response.status);
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        list.replaceChildren(...[...page.querySelectorAll("[name=exerciseId]")].map(optionOf));
        shown = wanted;
        open();
      } catch (error) {
        if (error.name === "AbortError") return;
        close();
        status.textContent = "The exercises could not be loaded. Try again.";
      }
    }

    function schedule() {
      clearTimeout(timer);
      timer = setTimeout(load, REST);
    }

    // Before the keys of the combobox, which is started later.
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return close();
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "ArrowDown" && !isOpen) load();
      if (event.key !== "Enter" || text() === shown) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!text()) return;
      isAwaited = true;
      clearTimeout(timer);
      load();
    });
    field.addEventListener("input", () => {
      isAwaited = false;
      schedule();
    });
    field.addEventListener("focus", schedule);
    field.addEventListener("blur", close);
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    list.addEventListener("combobox-commit", (event) => {
      chosen.elements.exerciseId.value = event.target.closest("[data-exercise]").dataset.exercise;
      close();
      chosen.requestSubmit();
    });
    form.addEventListener("submit", (event) => event.preventDefault()); // the list has taken the place of the search
  }

  return { start };
})();
