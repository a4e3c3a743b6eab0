// Reads whole lists, page by page, while others insert and delete. An entry that exists all the time is met exactly once.

import type { Client } from "./generated/client/index.js";

/** A part of a list, and the cursor of the next part; null after the last one. */
export interface Page<Entry> {
  docs: Entry[];
  nextCursor: string | null;
  hasMore?: boolean;
}

interface ListOptions {
  client?: Client;
  query?: object;
}

/** An operation with options that responds with a page. */
type ListOperation<Options extends ListOptions, Entry> = (
  options: Options & { throwOnError: true },
) => PromiseLike<{ data: Page<Entry> }>;

/** Each entry of a list: `walk(listCustomers<true>, { client, query: { archived: false, pageSize: 50, pageNum: 1 } })`. */
export async function* walk<Options extends ListOptions, Entry>(
  operation: ListOperation<Options, Entry>,
  options: Options,
): AsyncGenerator<Entry, void, undefined> {
  for await (const page of pages(operation, options)) yield* page.docs;
}

/** Each page of a list. For lists that never end, such as the events, until there is nothing more for now. */
export async function* pages<Options extends ListOptions, Entry>(
  operation: ListOperation<Options, Entry>,
  options: Options,
): AsyncGenerator<Page<Entry>, void, undefined> {
  let query = options.query;
  for (;;) {
    const { data } = await operation({ ...options, query, throwOnError: true });
    yield data;
    if (data.nextCursor === null || data.hasMore === false) return;
    query = { ...options.query, after: data.nextCursor };
  }
}
