"use strict";
// The questions of a form: cards that are dragged, moved by buttons and duplicated; a new one begins with its kind of answer.
{
  const list = document.querySelector("[data-questions]"), add = document.querySelector("[data-add]");
  const MOST = 100;
  const cards = () => [...list.children];
  const shown = () => cards().filter((card) => !card.hidden);
  const field = (card, name) => card.querySelector(`[name$=".${name}"]`);
  let next = cards().length; // of the names of fields

  function renumber() {
    shown().forEach((card, at) => {
      field(card, "position").value = at + 1;
      card.querySelector("[data-title]").textContent = `Question ${at + 1}`;
    });
    add.hidden = shown().length >= MOST;
  }

  function prepare(card) {
    for (const each of card.querySelectorAll("[data-grip], [data-tools]")) each.hidden = false;
    field(card, "position").closest(".field").hidden = true;
  }

  // A copy with names and identifiers of its own, as a question that is not saved yet.
  function copy(card) {
    const made = card.cloneNode(true), from = /(questions[.-])\d+([.-])/, to = `$1${next}$2`;
    for (const each of made.querySelectorAll("[name], [id], [for], [aria-describedby]")) {
      for (const name of ["name", "id", "for", "aria-describedby"]) {
        if (each.hasAttribute(name)) each.setAttribute(name, each.getAttribute(name).replace(from, to));
      }
    }
    for (const name of ["label", "type", "options"]) field(made, name).value = field(card, name).value;
    field(made, "required").checked = field(card, "required").checked;
    field(made, "_id").value = "";
    field(made, "out")?.closest(".tick").remove();
    next += 1;
    made.hidden = false;
    return made;
  }

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button"), card = button?.closest("li");
    if (!card) return;
    const all = shown(), at = all.indexOf(card);
    if (button.matches("[data-up]") && at > 0) all[at - 1].before(card);
    else if (button.matches("[data-down]") && at + 1 < all.length) all[at + 1].after(card);
    else if (button.matches("[data-duplicate]") && all.length < MOST) card.after(copy(card));
    else return;
    renumber();
    (button.matches("[data-duplicate]") ? field(card.nextElementSibling, "label") : button).focus();
  });

  add.addEventListener("click", (event) => {
    const kind = event.target.closest("button")?.dataset;
    if (!kind) return;
    const card = cards().find((each) => each.hidden) ?? copy(cards().at(-1));
    card.hidden = false;
    list.append(card);
    field(card, "label").value = "";
    field(card, "type").value = kind.type;
    field(card, "options").value = kind.options ?? "";
    renumber();
    field(card, "label").focus();
  });

  for (const card of cards()) {
    prepare(card);
    card.hidden = card.matches("[data-blank]") && !field(card, "label").value && !card.querySelector(".error");
  }
  for (const each of document.querySelectorAll("[data-without-script]")) each.hidden = true;
  renumber();
  Sortable.create(list, { animation: 150, forceFallback: true, handle: "[data-grip]", draggable: "li", onEnd: renumber });
}
