"use strict";
// Dragging workouts and items on a client's calendar, by mouse and touch: submits the "Move" form of what is dragged.

const SHARED = {
  animation: 150,
  delay: 200, // on touch screens a short touch scrolls
  delayOnTouchOnly: true,
  filter: "summary, details, form, a, button, input, select",
  preventOnFilter: false,
  ghostClass: "over",
};

const isMoved = (event) => event.from !== event.to || event.oldDraggableIndex !== event.newDraggableIndex;

for (const items of document.querySelectorAll("[data-block][data-movable] .items")) {
  Sortable.create(items, {
    ...SHARED,
    group: "items",
    draggable: "[data-item]",
    onEnd(event) {
      if (!isMoved(event)) return;
      const form = event.item.querySelector("form");
      form.elements.target.value = event.to.closest("[data-block]").dataset.block;
      form.elements.place.value = event.newDraggableIndex + 1;
      form.requestSubmit();
    },
  });
}

for (const day of document.querySelectorAll("[data-day]")) {
  Sortable.create(day, {
    ...SHARED,
    group: "workouts",
    draggable: "[data-movable]",
    filter: `${SHARED.filter}, [data-item]`,
    onEnd(event) {
      if (!isMoved(event)) return;
      const form = event.item.querySelector("[data-move-workout] form");
      const workouts = [...event.to.querySelectorAll("article")];
      form.elements.date.value = event.to.dataset.day;
      form.elements.place.value = workouts.indexOf(event.item) + 1;
      form.requestSubmit();
    },
  });
}
