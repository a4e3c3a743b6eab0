// What every program of this folder sends, and how it stops when a response is not the expected one.

export const baseUrl = process.env.COACHING_BASE_URL ?? "";
export const headers = { "X-API-Key": process.env.COACHING_API_KEY ?? "" };
export const monday = "2026-03-02";

const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export function picture(): File {
  return new File([Buffer.from(png, "base64")], "front.png", { type: "image/png" });
}

export function present<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`${what} is missing`);
  return value;
}

export function equal<T>(actual: T, expected: T, what: string): void {
  if (actual !== expected) throw new Error(`${what}: ${String(actual)} instead of ${String(expected)}`);
}
