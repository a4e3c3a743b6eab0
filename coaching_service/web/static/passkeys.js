"use strict";
// Passkeys: creating one in the settings, and answering the challenge of a sign-in with one.
{
  const toBytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const toText = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const say = (form, text) => (form.parentElement.querySelector("[data-passkey-state]").textContent = text);
  const encode = (credential, names) => JSON.stringify({
    id: credential.id,
    rawId: credential.id,
    response: Object.fromEntries(names.map((name) => [name, toText(credential.response[name])])),
  });

  async function post(path, body) {
    const response = await fetch(path, { method: "POST", body, headers: { Accept: "application/json" } });
    const result = await response.json();
    if (!response.ok) throw Object.assign(new Error(result.message), { name: "Refused" });
    return result;
  }

  // Run `work`, and say what went wrong: a browser does not tell whether its user has cancelled.
  async function attempt(form, button, work, failure) {
    button.disabled = true;
    try {
      await work();
    } catch (error) {
      const known = { InvalidStateError: "This device has a passkey for you already.", Refused: error.message };
      say(form, known[error.name] ?? failure);
    }
    button.disabled = false;
  }

  async function create(form, path) {
    const { data } = await post(path, new URLSearchParams({ csrf: form.elements.csrf.value }));
    const { publicKey } = data;
    const excludeCredentials = publicKey.excludeCredentials.map((each) => ({ ...each, id: toBytes(each.id) }));
    const user = { ...publicKey.user, id: toBytes(publicKey.user.id) };
    const challenge = toBytes(publicKey.challenge);
    const credential = await navigator.credentials.create({ publicKey: { ...publicKey, challenge, user, excludeCredentials } });
    form.elements.credential.value = encode(credential, ["clientDataJSON", "attestationObject"]);
    form.submit();
  }

  async function answer(form, prefix) {
    const challenge = form.elements[`${prefix}challenge`];
    const asked = challenge.value || (await post("/auth/second-factor/options", "{}")).challenge;
    const publicKey = { challenge: toBytes(asked), userVerification: "required" };
    const credential = await navigator.credentials.get({ publicKey });
    form.elements[`${prefix}assertion`].value = encode(credential, ["clientDataJSON", "authenticatorData", "signature"]);
    challenge.value = asked;
    form.submit();
  }

  if (window.PublicKeyCredential) {
    for (const fields of document.querySelectorAll("[data-passkey-create]")) {
      const { form } = fields.querySelector("button");
      say(form, "");
      fields.hidden = false;
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        delete form.dataset.sent; // app.js ignores a second submission
        attempt(form, event.submitter, () => create(form, fields.dataset.passkeyCreate), "No passkey was created. Try again.");
      });
    }
    for (const button of document.querySelectorAll("[data-passkey-get]")) {
      const { form } = button;
      say(form, "");
      button.hidden = false;
      button.addEventListener("click", () =>
        attempt(form, button, () => answer(form, button.dataset.passkeyGet), "No passkey was used. Try again."),
      );
    }
  }
}
