"use strict";
// Moving workouts and items on a client's calendar: submits the "Move" form of what is moved. A workout is dragged by its
// whole card, an item by its grip; with the keyboard, a workout is lifted by its button and moved by the arrow keys.
{
  const SHARED = {
    animation: 150,
    delay: 200, // on touch screens a short touch scrolls
    delayOnTouchOnly: true,
    preventOnFilter: false,
    ghostClass: "over",
  };
  const MOVED = "moved-workout"; // the workout to which the focus returns

  const listDays = () => [...document.querySelectorAll("[data-day]")];
  const isMoved = (event) => event.from !== event.to || event.oldDraggableIndex !== event.newDraggableIndex;

  // Make what the page shows, or a form has replaced, movable.
  function setUp() {
    for (const each of document.querySelectorAll("[data-movable] [data-grip], [data-lift]")) each.hidden = false;
    for (const link of document.querySelectorAll("[data-movable] a")) link.draggable = false; // else the link is dragged
    setUpItems();
    setUpDays();
  }

  const setUpItems = () => {
  for (const items of document.querySelectorAll("[data-block][data-movable] .items")) {
    Sortable.create(items, {
      ...SHARED,
      group: "items",
      draggable: "[data-item]",
      handle: "[data-grip]",
      onEnd(event) {
        if (!isMoved(event)) return;
        const form = event.item.querySelector("form");
        form.elements.target.value = event.to.closest("[data-block]").dataset.block;
        form.elements.place.value = event.newDraggableIndex + 1;
        form.requestSubmit();
      },
    });
  }
  };

  // Submit the new day and position of a card.
  function submit(card) {
    const form = card.querySelector("[data-move-workout] form");
    const day = card.closest("[data-day]");
    form.elements.date.value = day.dataset.day;
    form.elements.place.value = [...day.querySelectorAll("article")].indexOf(card) + 1;
    form.requestSubmit();
  }

  const setUpDays = () => {
  for (const day of listDays()) {
    Sortable.create(day, {
      ...SHARED,
      group: "workouts",
      draggable: "[data-movable]",
      filter: "summary, details, form, input, select, [data-grip]",
      onEnd: (event) => isMoved(event) && submit(event.item),
    });
  }
  };

  setUp();
  document.addEventListener("htmx:afterSwap", ({ detail }) => detail.elt.id === "calendar" && setUp());

  // --- keyboard ---
  let lifted = null; // the card that is being moved, where it was, and the button that has the focus
  let isMoving = false;

  const say = (text) => (document.querySelector("[data-announce]").textContent = text);
  const nameOf = (card) => card.getAttribute("aria-label");
  const cardsOf = (day) => [...day.querySelectorAll("article")];

  function place(card, day, before) {
    isMoving = true; // an element that is moved loses the focus
    day.insertBefore(card, before);
    lifted.button.focus();
    isMoving = false;
    const heading = day.querySelector("h3").textContent.replace(/\s+/g, " ").trim();
    say(`${nameOf(card)}: ${heading}, ${cardsOf(day).indexOf(card) + 1} of ${cardsOf(day).length}`);
  }

  function lift(button) {
    const card = button.closest("[data-movable]");
    lifted = { card, button, day: card.closest("[data-day]"), next: card.nextElementSibling };
    button.setAttribute("aria-pressed", "true");
    card.classList.add("lifted");
    say(`${nameOf(card)} lifted. Arrow keys move it, Enter puts it down, Escape puts it back.`);
  }

  function putDown(isKept) {
    const { card, button, day, next } = lifted;
    const isElsewhere = card.closest("[data-day]") !== day || card.nextElementSibling !== next;
    if (isElsewhere && !isKept) place(card, day, next);
    button.setAttribute("aria-pressed", "false");
    card.classList.remove("lifted");
    lifted = null;
    say(`${nameOf(card)} put ${isKept ? "down" : "back"}.`);
    if (!isElsewhere || !isKept) return;
    sessionStorage.setItem(MOVED, card.dataset.block);
    submit(card);
  }

  const moves = {
    ArrowLeft: () => toDay(-1),
    ArrowRight: () => toDay(1),
    ArrowUp: () => within(-1),
    ArrowDown: () => within(1),
  };

  function toDay(step) {
    const days = listDays();
    const day = days[days.indexOf(lifted.card.closest("[data-day]")) + step];
    if (day) place(lifted.card, day, cardsOf(day).at(-1)?.nextElementSibling ?? day.querySelector("h3").nextElementSibling);
  }

  function within(step) {
    const day = lifted.card.closest("[data-day]");
    const cards = cardsOf(day);
    const other = cards[cards.indexOf(lifted.card) + step];
    if (other) place(lifted.card, day, step < 0 ? other : other.nextElementSibling);
  }

  document.addEventListener("keydown", (event) => {
    if (event.target.matches("[data-lift]") && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      if (!event.repeat) lifted ? putDown(true) : lift(event.target);
    }
    if (!lifted || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.key !== "Escape" && !moves[event.key]) return;
    event.preventDefault();
    event.key === "Escape" ? putDown(false) : moves[event.key]();
  });
  document.addEventListener("focusout", () => lifted && !isMoving && putDown(false));

  const moved = sessionStorage.getItem(MOVED);
  sessionStorage.removeItem(MOVED);
  if (moved) document.querySelector(`[data-block="${moved}"] [data-lift]`)?.focus();
}
