"use strict";
// What a page shows when an answer to htmx is not the part that was asked for.
{
  const say = (text) => {
    const notice = document.createElement("div");
    notice.className = "wrong";
    notice.setAttribute("role", "alert");
    notice.textContent = text;
    document.getElementById("notices")?.replaceChildren(notice);
  };

  // The session has ended: signing in leads back to this page.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL).pathname !== "/app/sign-in") return;
    event.detail.shouldSwap = false;
    location.reload();
  });

  // A form that was rejected is sent again without htmx: its page says why and has the entries.
  document.addEventListener("htmx:responseError", ({ detail }) => {
    const form = detail.requestConfig.elt;
    if (form.localName !== "form") return say("This could not be loaded. Reload the page.");
    const button = detail.requestConfig.triggeringEvent?.submitter;
    if (button?.name) {
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name: button.name, value: button.value });
      form.append(field);
    }
    HTMLFormElement.prototype.submit.call(form);
  });
  document.addEventListener("htmx:sendError", () => say("There is no connection. Nothing was changed."));
}

// A filter leaves empty parameters, and the usual order, out of the address.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (!detail.elt.matches("[data-filter]")) return;
  for (const [name, value] of [...detail.formData]) {
    if (!value || (name === "sort" && value === "name")) detail.formData.delete(name);
  }
});
