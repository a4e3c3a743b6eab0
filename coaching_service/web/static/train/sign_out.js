// Signing out deletes what is stored on this device; what would be lost is said first.
train.signOut = (() => {
  async function begin(form) {
    const entries = await train.store.readEntries().catch(() => []);
    if (!entries.length || (await confirmLoss(entries))) await finish(form);
  }

  function describeLoss(entries) {
    const own = entries.filter((entry) => entry.user === train.user);
    const unsent = own.filter((entry) => !entry.rejection).length;
    const parts = [
      [unsent, "not sent yet"],
      [own.length - unsent, "not saved by the server"],
      [entries.length - own.length, "of another account"],
    ];
    return parts.filter(([count]) => count).map(([count, text]) => `${count} ${text}`).join(", ");
  }

  // Resolves with whether to sign out nevertheless.
  function confirmLoss(entries) {
    const dialog = document.createElement("dialog");
    dialog.className = "queue-dialog";
    dialog.setAttribute("aria-labelledby", "sign-out-title");
    const title = document.createElement("h2");
    title.id = "sign-out-title";
    const single = entries.length === 1;
    title.textContent = `${train.queueBar.count(entries)} would be lost`;
    const text = document.createElement("p");
    text.textContent =
      `Only on this device: ${describeLoss(entries)}. Signing out deletes ${single ? "it" : "them"}. ` +
      "Stay signed in and go online to send what is not sent.";
    const buttons = document.createElement("form");
    buttons.method = "dialog";
    buttons.className = "queue-buttons";
    const stay = createButton("Stay signed in", "", "");
    stay.autofocus = true;
    buttons.append(stay, createButton(`Sign out and lose ${single ? "it" : "them"}`, "leave", "quiet danger"));
    dialog.append(title, text, buttons);
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => {
      dialog.addEventListener("close", () => {
        dialog.remove();
        resolve(dialog.returnValue === "leave");
      });
    });
  }

  function createButton(text, value, style) {
    const button = document.createElement("button");
    Object.assign(button, { value, className: style, textContent: text });
    return button;
  }

  // Nothing is deleted unless the server ended the session.
  async function finish(form) {
    const answer = await post(document.body.dataset.csrf);
    if (!answer) return showFailure(form);
    await train.store.wipe().catch(() => {});
    train.tell("signedOut", {});
    location.assign(answer.location);
  }

  async function post(csrf, isSecond = false) {
    try {
      const body = new URLSearchParams({ csrf });
      const response = await fetch("/app/sign-out", { method: "POST", body, headers: { Accept: "application/json" } });
      const answer = await response.json();
      if (response.ok) return answer;
      return answer.csrf && !isSecond ? await post(answer.csrf, true) : null;
    } catch {
      return null;
    }
  }

  function showFailure(form) {
    let message = form.querySelector("[role=alert]");
    if (!message) {
      message = document.createElement("p");
      message.setAttribute("role", "alert");
      form.append(message);
    }
    message.textContent = "You are still signed in: the server cannot be reached. Try again when you are online.";
  }

  return { begin };
})();
