// The filter of the API reference: shows the operations whose name, method and path have all the words.
const field = document.getElementById("filter");
const groups = [...document.querySelectorAll("nav [data-operations]")].map((list) => ({
  list,
  heading: list.previousElementSibling,
  section: document.getElementById(list.dataset.operations).parentElement,
  operations: [...list.querySelectorAll("a")].map((link) => {
    const article = document.getElementById(link.hash.slice(1));
    const call = article.querySelector(".call").textContent;
    return { item: link.parentElement, article, words: `${link.textContent} ${call} ${article.id}`.toLowerCase() };
  }),
}));
const count = document.getElementById("filter-count");

function apply() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { list, heading, section, operations } of groups) {
    let some = false;
    for (const operation of operations) {
      const matches = words.every((word) => operation.words.includes(word));
      operation.item.hidden = operation.article.hidden = !matches;
      some ||= matches;
      shown += matches;
    }
    list.hidden = heading.hidden = section.hidden = !some;
  }
  count.textContent = words.length ? `${shown} ${shown === 1 ? "operation" : "operations"}` : "";
}

document.getElementById("filter-form").hidden = false;
field.addEventListener("input", apply);
field.form.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", () => {
  if (document.getElementById(location.hash.slice(1))?.closest("[hidden]")) {
    field.value = "";
    apply();
    document.getElementById(location.hash.slice(1)).scrollIntoView();
  }
});
apply();
