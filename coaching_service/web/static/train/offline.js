// The service worker saves the pages of today and tomorrow for this session; see service_worker.js.
train.offline = (() => {
  const SENT = "sent:";
  const KEPT_FOR = 48 * 3_600_000;
  const { session, savedAt } = document.body.dataset;
  const isSaved = savedAt !== undefined;

  // A slow network has answered: this page is of a session that has ended.
  function reloadIfEnded({ data }) {
    if (isSaved && data.name === "ended" && data.session === session) location.reload();
  }
  navigator.serviceWorker?.addEventListener("message", reloadIfEnded);

  async function tellWorker(message) {
    const { active } = await navigator.serviceWorker.ready;
    active?.postMessage({ session, ...message });
  }

  async function start() {
    if (!session || !("serviceWorker" in navigator)) return;
    await navigator.serviceWorker.register("/service-worker.js", { scope: "/", updateViaCache: "none" });
    if (!isSaved) await tellWorker({ name: "keep" });
  }

  // A set that was sent after the page was saved is shown as done on the saved page.
  async function noteSent(entry) {
    const { files, ...sent } = entry; // the server has them
    await train.store.write("states", { key: SENT + entry.token, entry: sent, at: Date.now() });
    const { pathname } = new URL(entry.page, location.href);
    await tellWorker({ name: "renew", path: pathname });
  }

  // What was sent since this page was saved. Nothing on a page of the server, which has it.
  async function readSent() {
    const notes = (await train.store.readAll("states")).filter(({ key }) => key.startsWith(SENT));
    const isHere = ({ entry }) => entry.page.split("?")[0] === location.pathname && entry.user === train.user;
    const isOver = (note) => (isHere(note) ? note.at <= (savedAt ?? Infinity) : Date.now() - note.at > KEPT_FOR);
    for (const note of notes.filter(isOver)) await train.store.remove("states", note.key);
    return notes.filter((note) => isHere(note) && !isOver(note)).map((note) => note.entry);
  }

  function describe() {
    const at = new Date(Number(savedAt));
    const isToday = at.toDateString() === new Date().toDateString();
    const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    return `No connection. This page was saved ${isToday ? "at" : "yesterday at"} ${time}.`;
  }

  function showBar() {
    if (!isSaved) return;
    const bar = document.createElement("p");
    bar.className = "saved-bar";
    bar.setAttribute("role", "status");
    bar.textContent = describe();
    document.querySelector("main").before(bar);
    window.addEventListener("online", () => {
      const link = document.createElement("a");
      link.href = location.href;
      link.textContent = "Show the page as it is now";
      bar.replaceChildren("You are online again. ", link);
    });
  }

  return { start, noteSent, readSent, showBar };
})();
