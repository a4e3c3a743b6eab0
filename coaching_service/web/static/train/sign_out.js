// Signing out deletes what is stored on this device; what would be lost is said first.
train.signOut = (() => {
  const UNSENT = "not sent yet";
  const TYPED = "typed but not saved";
  const REJECTED = "not saved by the server";
  const OTHERS = "of another account";

  async function begin(form) {
    const losses = await findLosses().catch(() => []);
    if (!losses.length || (await confirmLoss(losses))) await finish(form);
  }

  // What is only on this device, each with its kind.
  async function findLosses() {
    const drafts = await train.drafts.list();
    const entries = await train.store.readEntries();
    const kindOf = (entry) => (entry.user !== train.user ? OTHERS : entry.rejection ? REJECTED : UNSENT);
    return [
      ...entries.map((entry) => ({ isSet: entry.isSet, kind: kindOf(entry) })),
      ...drafts.map((draft) => ({ isSet: draft.isSet, kind: train.drafts.isOwn(draft) ? TYPED : OTHERS })),
    ];
  }

  function describeLoss(losses) {
    const groups = [UNSENT, TYPED, REJECTED, OTHERS].map((kind) => losses.filter((loss) => loss.kind === kind));
    return groups.filter((group) => group.length).map((group) => `${train.queueBar.count(group)} ${group[0].kind}`).join(", ");
  }

  // Resolves with whether to sign out nevertheless.
  function confirmLoss(losses) {
    const dialog = document.createElement("dialog");
    dialog.className = "queue-dialog";
    dialog.setAttribute("aria-labelledby", "sign-out-title");
    const title = document.createElement("h2");
    title.id = "sign-out-title";
    const single = losses.length === 1;
    const isOfOthers = losses.every(({ kind }) => kind === OTHERS);
    title.textContent = `${train.queueBar.count(losses)} ${isOfOthers ? `${OTHERS} on this device ` : ""}would be lost`;
    const text = document.createElement("p");
    text.textContent =
      `Only on this device: ${describeLoss(losses)}. Signing out deletes ${single ? "it" : "them"}.` +
      (losses.some(({ kind }) => kind === UNSENT) ? " Stay signed in and go online to send what is not sent." : "");
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
