// A host of MCP Apps as a chat application is one: the official client and bridge, and a sandboxed frame for the view.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { CallToolResult } from "@modelcontextprotocol/client";
import {
  AppBridge,
  PostMessageTransport,
  RESOURCE_MIME_TYPE,
  getToolUiResourceUri,
  isToolVisibilityAppOnly,
} from "@modelcontextprotocol/ext-apps/app-bridge";

interface Settings {
  endpoint: string;
  token: string;
  mode: "auto" | "legacy";
  theme: "light" | "dark";
  policy: string; // for the view; empty: the host ignores what a view declares
}

interface Shown {
  text: string; // what the model reads
  calls: { name: string; arguments?: Record<string, unknown> }[]; // what the view has called
  links: string[]; // what the view has opened
  informed: string[]; // what the view has told the model
}

const information = { name: "a host", version: "1" };

async function connect(settings: Settings): Promise<Client> {
  const capabilities = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } };
  const client = new Client(information, { capabilities, versionNegotiation: { mode: settings.mode } });
  const requestInit = { headers: { Authorization: `Bearer ${settings.token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(settings.endpoint), { requestInit }));
  return client;
}

/** Call a tool as a model does, and show its view. */
async function show(settings: Settings, name: string, input: Record<string, unknown>): Promise<Shown> {
  const client = await connect(settings);
  const { tools } = await client.listTools();
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined || isToolVisibilityAppOnly(tool)) throw new Error(`The model sees no tool ${name}`);
  const uri = getToolUiResourceUri(tool);
  if (uri === undefined) throw new Error(`${name} has no view`);
  const result = (await client.callTool({ name, arguments: input })) as CallToolResult;
  const [content] = (await client.readResource({ uri })).contents;
  if (!("text" in content) || content.mimeType !== RESOURCE_MIME_TYPE) throw new Error("The view is not HTML");

  const shown: Shown = {
    text: result.content.map((each) => (each.type === "text" ? each.text : "")).join("\n"),
    calls: [],
    links: [],
    informed: [],
  };
  const frame = document.createElement("iframe");
  frame.title = uri;
  frame.style.cssText = "width: 100%; border: 0";
  frame.sandbox.add("allow-scripts");
  document.body.replaceChildren(frame);
  const bridge = new AppBridge(
    null,
    information,
    { serverTools: {}, openLinks: {}, updateModelContext: { text: {} } },
    { hostContext: { theme: settings.theme, locale: "en-GB" } },
  );
  bridge.oncalltool = async (params) => {
    const called = tools.find((each) => each.name === params.name);
    if (called === undefined) throw new Error(`There is no tool ${params.name}`);
    shown.calls.push({ name: params.name, arguments: params.arguments });
    return (await client.callTool(params)) as CallToolResult;
  };
  bridge.onopenlink = async ({ url }) => {
    shown.links.push(url);
    return {};
  };
  bridge.onupdatemodelcontext = async ({ content: blocks }) => {
    shown.informed.push(...(blocks ?? []).map((each) => (each.type === "text" ? each.text : "")));
    return {};
  };
  bridge.addEventListener("sizechange", ({ height }) => {
    if (height !== undefined) frame.style.height = `${height}px`;
  });
  bridge.addEventListener("initialized", () => {
    void bridge.sendToolInput({ arguments: input }).then(() => bridge.sendToolResult(result));
  });
  const view = frame.contentWindow;
  if (view === null) throw new Error("The frame has no window");
  await bridge.connect(new PostMessageTransport(view, view));
  const policy = `<meta http-equiv="Content-Security-Policy" content="${settings.policy}">`;
  frame.srcdoc = settings.policy ? content.text.replace("<head>", `<head>${policy}`) : content.text;
  return shown;
}

Object.assign(window, {
  show: async (...given: Parameters<typeof show>) => {
    const shown = await show(...given);
    Object.assign(window, { shown });
    return shown.text;
  },
});
