// The view's side of MCP Apps (2026-01-26): JSON-RPC with the window that shows the view.
const host = (() => {
  const waiting = new Map();
  const handlers = {};
  let lastId = 0;
  let context = {};
  let capabilities = {};

  const post = (message) => window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");

  function request(method, params) {
    lastId += 1;
    const id = lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      post({ id, method, params });
    });
  }

  function use(changed) {
    context = { ...context, ...changed };
    const root = document.documentElement;
    if (context.theme === "light" || context.theme === "dark") root.dataset.theme = context.theme;
    const font = context.styles?.variables?.["--font-sans"];
    if (font) root.style.setProperty("--font-sans", font);
  }

  function receive({ id, method, params, result, error }) {
    if (method === undefined) {
      const { resolve, reject } = waiting.get(id) ?? {};
      waiting.delete(id);
      if (error) reject?.(new Error(error.message));
      else resolve?.(result);
    } else if (id !== undefined) {
      const isKnown = method === "ping" || method === "ui/resource-teardown";
      post(isKnown ? { id, result: {} } : { id, error: { code: -32601, message: "Method not found" } });
    } else if (method === "ui/notifications/host-context-changed") {
      use(params);
    } else if (method === "ui/notifications/tool-result") {
      handlers.result?.(params);
    } else if (method === "ui/notifications/tool-cancelled") {
      handlers.cancelled?.();
    }
  }

  window.addEventListener("message", (event) => {
    if (event.source === window.parent && event.data?.jsonrpc === "2.0") receive(event.data);
  });

  function reportSize() {
    const { width, height } = document.documentElement.getBoundingClientRect();
    post({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
  }

  return {
    can: (name) => capabilities[name] !== undefined,
    locale: () => context.locale || "en",
    callTool: (name, args) => request("tools/call", { name, arguments: args }),
    openLink: (url) => request("ui/open-link", { url }),
    // What the assistant reads with the coach's next message.
    inform: (text) => capabilities.updateModelContext && request("ui/update-model-context", { content: [{ type: "text", text }] }),
    /** Begin the conversation with the host; `given.result` receives the result of the tool, as the host received it. */
    async connect(given) {
      Object.assign(handlers, given);
      const answer = await request("ui/initialize", {
        appInfo: { name: "coaching-service", version: "1" },
        appCapabilities: { availableDisplayModes: ["inline"] },
        protocolVersion: "2026-01-26",
      });
      capabilities = answer.hostCapabilities ?? {};
      use(answer.hostContext ?? {});
      post({ method: "ui/notifications/initialized" });
      new ResizeObserver(reportSize).observe(document.documentElement);
    },
  };
})();

/** Return an element with text or elements in it. */
function element(name, attributes, ...contents) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...contents.filter((each) => each !== null));
  return made;
}

/** Return what an assistant reads, for people: without the marks of typed text, and without identifiers. */
function plain(text) {
  return text
    .replace(/«([^«»]*)»/g, "$1")
    .replace(/ ?\[[0-9a-f]{24}\]/g, "")
    .replace(/^#[0-9a-f]+ /gm, "");
}

/** Return the text of a result. */
function textOf(result) {
  return (result.content ?? []).filter((each) => each.type === "text").map((each) => each.text).join("\n");
}

/** Return a date (YYYY-MM-DD) in words. */
function dateInWords(date) {
  const options = { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" };
  return new Date(`${date}T00:00:00Z`).toLocaleDateString(host.locale(), options);
}
