// "3 of 17 sets", with those that are not sent yet.
train.progress = (() => {
  const place = document.querySelector("[data-workout-progress]");
  const rows = () => train.forms.all().filter((form) => train.forms.isSet(form) && !form.closest("details.set-extra"));

  function count() {
    const shown = rows();
    return { done: shown.filter((form) => form.dataset.done === "true").length, planned: shown.length };
  }

  // Sets that count for the server and have no row here, such as done ones of an item that was skipped.
  let others = { done: 0, planned: 0 };
  function setServerCount(done, planned) {
    const here = count();
    others = { done: done - here.done, planned: planned - here.planned };
  }

  function show() {
    if (!place) return;
    const here = count();
    const planned = here.planned + others.planned;
    place.textContent = planned ? `${here.done + others.done} of ${planned} set${planned === 1 ? "" : "s"}` : "";
  }

  // Take over the count of the server, which knows everything that this page sent.
  function correct(workout) {
    if (!place || !workout) return;
    setServerCount(workout.completedSets, workout.plannedSets);
    show();
  }

  if (place) setServerCount(Number(place.dataset.done), Number(place.dataset.planned));

  return { show, correct };
})();
