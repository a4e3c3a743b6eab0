"use strict";
// A file that is imported: each name of an exercise gets a field that picks what it means.
{
  const template = document.querySelector("[data-name-picker]");

  function addPicker(select, at) {
    const name = select.closest("tr").querySelector("input").value;
    const box = template.content.cloneNode(true).querySelector(".picker");
    if (!box.dataset.picker) return; // exercises may not be seen
    const [field, label, list] = ["input", "label", "[role=listbox]"].map((each) => box.querySelector(each));
    field.id = label.htmlFor = `picker-${at}`;
    list.id = `picker-${at}-options`;
    label.className = "hidden-text";
    label.textContent = `Search an exercise for ${name}`;
    box.addEventListener("picked", (event) => {
      event.preventDefault();
      const { id, name: chosen } = event.detail;
      let option = [...select.options].find((each) => each.value === id);
      if (!option) select.prepend((option = new Option(chosen, id)));
      option.selected = true;
      box.querySelector("[role=status]").textContent = `${chosen} is chosen`;
    });
    select.after(box);
    picker.start(box);
  }

  if (template) document.querySelectorAll("[data-names] select").forEach(addPicker);
}
