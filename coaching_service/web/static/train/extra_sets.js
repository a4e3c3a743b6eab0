// "Add a set": once the offered set is done it is a row like the others, and the next one is offered.
train.extraSets = (() => {
  const NUMBER = /\d+$/;

  // Offer the next set if the form is the one offered now.
  function offerNext(form) {
    const extra = form.closest("details.set-extra");
    if (!extra) return;
    const next = createNext(form);
    extra.before(form);
    extra.append(next);
    extra.open = false;
    train.forms.write(next, train.forms.read(form));
    train.forms.setBase(next, train.forms.read(next));
    train.progress.show();
  }

  function createNext(form) {
    const next = form.cloneNode(true);
    const index = next.querySelector("input[name=index]");
    const number = Number(index.value) + 1;
    index.value = number;
    next.id = form.id.replace(NUMBER, number);
    const label = form.dataset.label;
    const newLabel = label.replace(NUMBER, number);
    next.dataset.label = newLabel;
    for (const element of next.querySelectorAll("[aria-label]")) {
      element.setAttribute("aria-label", element.getAttribute("aria-label").replace(label, newLabel));
    }
    const shown = next.querySelector(".set-number");
    if (shown) shown.textContent = shown.textContent.replace(NUMBER, number);
    train.sets.reset(next);
    return next;
  }

  return { offerNext };
})();
