// The service worker: notifications, and the pages of /train that open without a connection. STATIC, the static files of
// these pages by the hash of their content, ICON, and PATIENCE are defined in front of this by web/static_files.py.
//
// A saved page is encrypted with a key that this device made for one session and that no script can read. The key and
// the pages are deleted when a page of another session, or of none, arrives.
const DATABASE = "train-pages";
const DRAFTS = "train"; // the database of the pages
const FILES = "train-files";
const SESSION = "Offline-Session"; // the header of each page: the session of a client, or "none"
const OFFLINE = "X-Saves-Page"; // the header of a request that only saves a page
const LIFETIME = 48 * 3_600_000; // of a saved page without a connection
const KEPT_FOR = 10 * 60_000; // after which the pages are saved again
const PAUSE = 1_000; // before a page is saved again after a change
const WORKOUT = /^\/train\/workouts\/[0-9a-f]{24}$/; // a page that is saved once it is opened
const KEPT_HEADERS = ["Content-Type", "Content-Security-Policy", "Referrer-Policy", "X-Content-Type-Options"];

// --- saved pages -----------------------------------------------------------------------------------------------------

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("session");
      request.result.createObjectStore("pages", { keyPath: "path" });
    };
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close(); // a page deletes it
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
}

// Call `work` with both stores in one transaction; resolves when it is written, with the result of the request it returns.
async function run(mode, work) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(["session", "pages"], mode);
      const request = work(transaction.objectStore("session"), transaction.objectStore("pages"));
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

const readSession = () => run("readonly", (session) => session.get("current"));
const readPages = () => run("readonly", (_, pages) => pages.getAll());
const forget = () => run("readwrite", (session, pages) => (session.clear(), pages.clear()));

// Delete what is saved of a session that has ended, and what was typed in it.
async function endSession() {
  await forget();
  const databases = (await indexedDB.databases?.()) ?? [];
  if (!databases.some(({ name }) => name === DRAFTS)) return;
  await new Promise((resolve) => {
    const request = indexedDB.open(DRAFTS);
    request.onerror = request.onblocked = resolve;
    request.onsuccess = () => {
      const database = request.result;
      if (database.objectStoreNames.contains("drafts")) database.transaction(["drafts"], "readwrite").objectStore("drafts").clear();
      database.close(); // once the transaction is written
      resolve();
    };
  });
}

// The record of a session, which is made if there is none; what was saved for another one is deleted first.
async function takeSession(id) {
  const current = await readSession();
  if (current?.id === id) return current;
  await (current ? endSession() : forget());
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  const made = { id, key, savedAt: 0 };
  await run("readwrite", (session) => session.put(made, "current"));
  return made;
}

// Change the record of a session, unless it has ended.
const changeSession = (id, change) =>
  run("readwrite", (session) => {
    const stored = session.get("current");
    stored.onsuccess = () => stored.result?.id === id && session.put({ ...stored.result, ...change }, "current");
  });

const boundTo = (path) => new TextEncoder().encode(path);

async function savePage({ id, key }, path, response) {
  const iv = crypto.getRandomValues(new Uint8Array(12));
  const parts = { name: "AES-GCM", iv, additionalData: boundTo(path) };
  const content = await crypto.subtle.encrypt(parts, key, await response.arrayBuffer());
  const headers = KEPT_HEADERS.filter((name) => response.headers.has(name)).map((name) => [name, response.headers.get(name)]);
  const page = { path, iv, content, headers, savedAt: Date.now() };
  await run("readwrite", (session, pages) => {
    const stored = session.get("current");
    stored.onsuccess = () => stored.result?.id === id && pages.put(page); // not if the session ended meanwhile
  });
}

// The saved page of a path as a response, or null. `data-saved-at` tells the scripts of the page when it was saved.
async function loadPage(path) {
  const session = await readSession();
  const page = await run("readonly", (_, pages) => pages.get(path));
  if (!session || !page) return null;
  if (Date.now() - page.savedAt > LIFETIME) return await forget(), null;
  const parts = { name: "AES-GCM", iv: page.iv, additionalData: boundTo(path) };
  const content = await crypto.subtle.decrypt(parts, session.key, page.content);
  const html = new TextDecoder().decode(content).replace("<body ", `<body data-saved-at="${page.savedAt}" `);
  return new Response(html, { headers: page.headers });
}

// What a page that has arrived says of its session. `copy`: the page again, which is saved if it is a saved one or a
// workout, and from which what Today names is read.
async function follow(path, response, copy) {
  const id = response.headers.get(SESSION);
  if (id === null) return;
  const session = await readSession();
  if (session && session.id !== id) {
    await endSession();
    return await tellWindows({ name: "ended", session: session.id });
  }
  if (!session || !copy.ok || copy.redirected) return;
  const isSaved = await run("readonly", (_, pages) => pages.getKey(path));
  if (!isSaved && !WORKOUT.test(path)) return;
  const named = path === "/train" ? namedBy(await copy.clone().text()) : [];
  await savePage(session, path, copy);
  await saveMissing(session, named);
}

// A saved page may be shown already, while this one was on its way.
async function tellWindows(message) {
  for (const shown of await self.clients.matchAll({ type: "window" })) shown.postMessage(message);
}

// The pages that Today names, which open without a connection.
function namedBy(html) {
  const named = html.match(/data-keep="([^"]*)"/)?.[1] ?? "";
  return named.split(" ").filter((path) => path.startsWith("/train/"));
}

// Save those of `paths` that are not saved yet: a coach, or the client, may just have added a workout.
async function saveMissing(session, paths) {
  const saved = (await readPages()).map((page) => page.path);
  for (const path of paths.filter((each) => !saved.includes(each))) {
    const response = await readPage(path, session.id);
    if (response) await savePage(session, path, response);
  }
}

// Read a page to save it; null if it cannot be read now. What is saved is deleted if the session has ended.
async function readPage(path, id) {
  const response = await fetch(path, { redirect: "manual", headers: { [OFFLINE]: "1" } }).catch(() => null);
  if (!response) return null;
  if (response.type === "opaqueredirect" || response.headers.get(SESSION) !== id) {
    const isOver = response.type === "opaqueredirect" || response.headers.has(SESSION);
    return isOver && (await endSession()), null;
  }
  return response.ok ? response : null;
}

// Save the pages of today and tomorrow, which the first page names. Others are deleted, but for workouts that were opened.
async function keep(id) {
  const session = await takeSession(id);
  if (Date.now() - session.savedAt < KEPT_FOR) return;
  await changeSession(id, { savedAt: Date.now() });
  const first = await readPage("/train", id);
  if (!first) return await changeSession(id, { savedAt: 0 });
  const paths = ["/train", ...namedBy(await first.clone().text())];
  await savePage(session, "/train", first);
  for (const path of paths.slice(1)) {
    const response = await readPage(path, id);
    if (response) await savePage(session, path, response);
  }
  const isOpened = ({ path, savedAt }) => WORKOUT.test(path) && Date.now() - savedAt < LIFETIME;
  const others = (await readPages()).filter((page) => !paths.includes(page.path) && !isOpened(page));
  await run("readwrite", (_, pages) => others.forEach((page) => pages.delete(page.path)));
  await saveFiles();
}

const waiting = new Set();

// Save a page again after something on it has changed; changes within a second once.
async function renew(id, path) {
  if (waiting.has(path)) return;
  waiting.add(path);
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  waiting.delete(path);
  const session = await readSession();
  if (session?.id !== id || !(await run("readonly", (_, pages) => pages.getKey(path)))) return;
  const response = await readPage(path, id);
  if (response) await savePage(session, path, response);
}

async function showPage(event, path) {
  const network = Promise.resolve(event.preloadResponse).then((response) => response ?? fetch(event.request));
  network.catch(() => {});
  const saved = await loadPage(path).catch(() => null);
  const followed = network.then((response) => follow(path, response, response.clone()));
  event.waitUntil(followed.catch(() => {}));
  try {
    return await (saved ? Promise.race([network, fail(PATIENCE)]) : network);
  } catch {
    return saved ?? offlinePage();
  }
}

const fail = (after) => new Promise((_, reject) => setTimeout(reject, after, new Error("no answer")));

// What is shown instead of a page that is not saved. It has nothing of anybody.
function offlinePage() {
  const styles = STATIC.filter((path) => path.endsWith(".css")).map((path) => `<link rel="stylesheet" href="${path}">`);
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>No connection</title>
<meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover">${styles.join("")}</head>
<body class="train outside"><main id="main"><h1>No connection</h1>
<p>This page is not saved on this device. Today, your workouts of today and tomorrow, and those you opened are.</p>
<p><a class="button wide" href="/train">Open Today</a></p></main></body></html>`;
  const policy = "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'";
  const headers = { "Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy };
  return new Response(html, { status: 503, headers });
}

// --- static files ----------------------------------------------------------------------------------------------------

// Save the static files, and delete those of earlier versions once no saved page needs them.
async function saveFiles() {
  const cache = await caches.open(FILES);
  const saved = (await cache.keys()).map((request) => new URL(request.url).pathname);
  await cache.addAll(STATIC.filter((path) => !saved.includes(path)));
  const pages = await readPages();
  if (!pages.length || pages.every((page) => page.savedAt >= startedAt)) {
    await Promise.all(saved.filter((path) => !STATIC.includes(path)).map((path) => cache.delete(path)));
  }
}

const startedAt = Date.now();

async function showFile(request) {
  const cache = await caches.open(FILES);
  return (await cache.match(request, { ignoreVary: true })) ?? fetch(request);
}

// --- notifications ---------------------------------------------------------------------------------------------------

function readMessage(event) {
  try {
    return event.data.json();
  } catch {
    return { title: "Training", body: "Something is new.", path: "/train", tag: "other" };
  }
}

// Whether a path is a page of this service.
const isOwnPage = (path) => /^\/(train|app)(\/[\w/-]*)?([?#][\w=&%#-]*)?$/.test(path ?? "");

async function openPage(path) {
  const windows = await self.clients.matchAll({ type: "window" });
  const shown = windows.find((client) => client.visibilityState === "visible") ?? windows[0];
  if (!shown) return self.clients.openWindow(path);
  await shown.focus().catch(() => {}); // some browsers allow it only once for a click
  return shown.navigate(path).catch(() => self.clients.openWindow(path)); // one that this worker does not control
}

// --- events ----------------------------------------------------------------------------------------------------------

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(saveFiles());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(Promise.all([self.clients.claim(), self.registration.navigationPreload?.enable()]));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin) return;
  if (url.pathname.startsWith("/app/static/")) return event.respondWith(showFile(request));
  if (request.mode !== "navigate") return;
  const isTraining = url.pathname === "/train" || url.pathname.startsWith("/train/");
  if (url.searchParams.has("company")) url.searchParams.delete("company"); // of a link in a mail; others stay as they were saved
  if (isTraining || url.pathname === "/app/sign-in") event.respondWith(showPage(event, url.pathname + url.search));
});

self.addEventListener("message", (event) => {
  const { name, session, path } = event.data;
  if (name === "keep") event.waitUntil(keep(session).catch(() => {}));
  if (name === "renew") event.waitUntil(renew(session, path).catch(() => {}));
});

self.addEventListener("push", (event) => {
  const { title, body, path, tag } = readMessage(event);
  const options = { body, tag, icon: ICON, badge: ICON, data: { path } };
  event.waitUntil(self.registration.showNotification(title, options));
});

self.addEventListener("notificationclick", (event) => {
  const { path } = event.notification.data ?? {};
  event.notification.close();
  event.waitUntil(openPage(isOwnPage(path) ? path : "/"));
});
