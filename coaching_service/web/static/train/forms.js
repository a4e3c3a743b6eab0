// Forms that are sent by the queue: their identity, what is typed into them, and what they had before.
train.forms = (() => {
  const SELECTOR = "form[data-queue]";
  const NOT_TYPED = new Set(["hidden", "submit", "button", "reset", "file", "password", "fieldset", "output"]);
  const bases = new WeakMap();

  const all = () => [...document.querySelectorAll(SELECTOR)];
  const hasFile = (form) => [...form.elements].some((each) => each.type === "file" && each.files.length);
  // Sent by the browser: with a file, unless the form says that it is queued too, or a text whose answer has more than words.
  const isPlain = (form) =>
    (hasFile(form) && !("files" in form.dataset)) || Boolean(form.elements[form.dataset.plain]?.value?.trim());
  const isQueued = (form) => Boolean(train.user && form?.matches?.(SELECTOR) && !isPlain(form));
  const isRepeated = (form) => "repeats" in form.dataset; // each entry is another one, such as a message
  const isSet = (form) => form.classList.contains("set-row");

  function urlOf(form) {
    const url = new URL(form.getAttribute("action") || location.href, location.href);
    return url.pathname + url.search;
  }

  // The id of a form, or its URL with its place among the forms of this URL.
  function idOf(form) {
    if (form.id) return form.id;
    const url = urlOf(form);
    return `${url} ${all().filter((other) => !other.id && urlOf(other) === url).indexOf(form)}`;
  }

  const find = (id) => all().find((form) => idOf(form) === id);
  const controlsOf = (form) => [...form.elements].filter((each) => each.name && !NOT_TYPED.has(each.type));

  function valuesOfControl(control, isDefault) {
    if (isChoice(control)) {
      return (isDefault ? control.defaultChecked : control.checked) ? [control.value] : [];
    }
    if (control.options) {
      const options = [...control.options];
      const chosen = options.filter((option) => (isDefault ? option.defaultSelected : option.selected));
      if (isDefault && !chosen.length && !control.multiple) chosen.push(...options.slice(0, 1));
      return chosen.map((option) => option.value);
    }
    return [isDefault ? control.defaultValue : control.value];
  }

  // What is in the form now, or was when the page was made: a list of values for each name.
  function read(form, isDefault = false) {
    const values = {};
    for (const control of controlsOf(form)) {
      (values[control.name] ??= []).push(...valuesOfControl(control, isDefault));
    }
    return values;
  }

  // Fill in the fields that `values` names, and open what hides one that changed.
  function write(form, values) {
    const rest = Object.fromEntries(Object.entries(values).map(([name, list]) => [name, [...list]]));
    for (const control of controlsOf(form)) {
      if (!(control.name in rest)) continue;
      const before = JSON.stringify(valuesOfControl(control));
      if (isChoice(control)) {
        control.checked = rest[control.name].includes(control.value);
      } else if (control.options) {
        for (const option of control.options) option.selected = rest[control.name].includes(option.value);
      } else if (rest[control.name].length) {
        control.value = rest[control.name].shift();
      }
      if (JSON.stringify(valuesOfControl(control)) !== before) reveal(control);
    }
  }

  // Open the disclosure that hides a field: the one it is in, or the one for all sets of the exercise.
  function reveal(control) {
    for (let details = control.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
    if (control.offsetParent === null) {
      for (const details of control.closest("section")?.querySelectorAll("details.set-switch") ?? []) details.open = true;
    }
  }

  // The values that typing started from: those of the server, or those last submitted.
  const baseOf = (form) => bases.get(form) ?? read(form, true);
  const setBase = (form, values) => bases.set(form, values);

  // For the next entry of a repeated form.
  function clear(form) {
    for (const control of controlsOf(form)) control.value = "";
    for (const control of form.elements) if (control.type === "file") control.value = "";
    setBase(form, read(form));
  }

  function asNumber(text) {
    const trimmed = text.trim();
    if (/^\d+(:[0-5]\d([.,]\d+)?){1,2}$/.test(trimmed)) {
      return String(trimmed.split(":").reduce((sum, part) => sum * 60 + Number(part.replace(",", ".")), 0)); // 27:00
    }
    return /^[+-]?\d+([.,]\d+)?$/.test(trimmed) ? String(Number(trimmed.replace(",", "."))) : trimmed;
  }
  const isSame = (one, other) =>
    Boolean(one && other) && one.length === other.length && one.every((text, at) => asNumber(text) === asNumber(other[at]));
  function isChanged(form) {
    const base = baseOf(form);
    return Object.entries(read(form)).some(([name, list]) => !isSame(list, base[name]));
  }

  // Show what the server has, or another tab sent, except in fields in which something else was typed since.
  function takeOver(form, values) {
    const [base, typed] = [baseOf(form), read(form)];
    const known = Object.entries(values).filter(([name]) => name in typed);
    const others = known.filter(([name, list]) => isSame(typed[name], base[name]) && !isSame(typed[name], list));
    write(form, Object.fromEntries(others));
    setBase(form, { ...base, ...Object.fromEntries(known) });
  }

  // The time of a set that is sent now: the server keeps the later one, and this or another clock may have been ahead.
  const nextTimeOf = (form) => new Date(Math.max(Date.now(), timeOf(form) + 1)).toISOString();
  const timeOf = (form) => Date.parse(form.dataset.loggedAt) || 0;
  function noteTime(form, time) {
    if (Date.parse(time) > timeOf(form)) form.dataset.loggedAt = time;
  }

  const isChoice = (control) => control.type === "checkbox" || control.type === "radio";
  const ownLabelOf = (control) =>
    control.getAttribute("aria-label") ?? control.labels?.[0]?.textContent.trim() ?? control.name;

  // The label of a field, or the question of a choice, without the label of its form.
  function labelOf(control) {
    const legend = isChoice(control) && control.closest("fieldset")?.querySelector("legend");
    const label = legend ? legend.textContent.trim() : ownLabelOf(control);
    const prefix = `${control.form.dataset.label}: `;
    const own = label.startsWith(prefix) ? label.slice(prefix.length) : label;
    return own.charAt(0).toUpperCase() + own.slice(1);
  }

  const labelsOf = (form) => Object.fromEntries(controlsOf(form).map((control) => [control.name, labelOf(control)]));

  // The heading of the page with the day of its workout, as far as the label does not say it.
  function placeOf(form) {
    const texts = ["h1", ".wk-head .eyebrow"].map((selector) => document.querySelector(selector)?.textContent.trim());
    return texts.filter((text) => text && text !== form.dataset.label).join(", ");
  }

  const sizeOf = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
  const describeFiles = (form) =>
    [...form.elements]
      .filter((control) => control.type === "file" && !control.hidden)
      .flatMap((control) => [...control.files].map((file) => `${file.name}, ${sizeOf(file.size)}`));

  // What a person typed, with the labels of the fields, and the files with their sizes.
  const describe = (form) => [...describeFields(form), ...describeFiles(form)];

  function describeFields(form) {
    const shown = controlsOf(form).filter((control) => !("quiet" in control.dataset));
    return shown.flatMap((control) => {
      const values = valuesOfControl(control).filter(Boolean);
      if (!values.length) return [];
      const [label, own] = [labelOf(control), ownLabelOf(control)];
      if (isChoice(control)) return [label === own ? label : `${label}: ${own}`];
      const shown = control.options ? [...control.selectedOptions].map((option) => option.text) : values;
      return [`${label}: ${shown.join(", ")}`];
    });
  }

  return {
    all, isPlain, isQueued, isRepeated, isSet, urlOf, idOf, find, read, write, takeOver, clear, baseOf, setBase, isSame, isChanged, asNumber,
    nextTimeOf, noteTime, labelsOf, placeOf, describe, sizeOf,
  };
})();
