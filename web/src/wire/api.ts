// Requests to the server: JSON in, JSON out, errors with the server's own words.
import { signal } from "@preact/signals";

const KEY = "codeloop.key";

/** Whether the server knows this browser; the page shows how to sign in while it does not. */
export const isSignedOut = signal(false);

/** A request that the server refused, or that did not reach it (`status` 0). */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

type Query = Record<string, string | number | boolean | undefined>;

interface Options {
  query?: Query;
  body?: unknown;
  directory?: string;
  headers?: Record<string, string>;
}

/** The headers that let this page in; the other half of the session is a cookie that no script reads. */
export function credentials(): Record<string, string> {
  return { "x-codeloop-key": localStorage.getItem(KEY) ?? "" };
}

async function send(method: string, path: string, { query = {}, body, directory, headers: more = {} }: Options): Promise<Response> {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value));
  const headers = { ...credentials(), ...more };
  if (directory) headers["x-opencode-directory"] = encodeURIComponent(directory);
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(url, { method, headers, credentials: "same-origin", ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  } catch {
    throw new Refused(0, "The server can't be reached.");
  }
  if (response.status === 401) isSignedOut.value = true;
  if (!response.ok) throw new Refused(response.status, await reason(response));
  return response;
}

async function reason(response: Response): Promise<string> {
  try {
    const value = (await response.json()) as { data?: { message?: string }; message?: string };
    return value.data?.message ?? value.message ?? `The server answered ${response.status}.`;
  } catch {
    return response.status === 401 ? "This browser is not signed in." : `The server answered ${response.status}.`;
  }
}

/** Ask the server and read its JSON answer; undefined where it has none. Throws Refused. */
export async function ask<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await send(method, path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const get = <T>(path: string, directory?: string, query?: Query): Promise<T> => ask<T>("GET", path, { ...(directory ? { directory } : {}), ...(query ? { query } : {}) });

export const post = <T>(path: string, body: unknown, directory?: string): Promise<T> => ask<T>("POST", path, { body, ...(directory ? { directory } : {}) });

/** Read one page of a list that says in a header where the older ones begin. */
export async function getPage<T>(path: string, directory: string, query: Query): Promise<{ items: T[]; cursor: string | null }> {
  const response = await send("GET", path, { directory, query });
  return { items: (await response.json()) as T[], cursor: response.headers.get("x-next-cursor") };
}

/** Exchange a one-time link, or the server's password, for a session of this browser. Throws an error that says why not. */
export async function signIn(credential: { link: string } | { username: string; password: string }): Promise<void> {
  const bytes = "link" in credential ? null : new TextEncoder().encode(`${credential.username}:${credential.password}`);
  const authorization = "link" in credential ? `Link ${credential.link}` : `Basic ${btoa(String.fromCharCode(...bytes!))}`;
  const response = await fetch("/web/session", { method: "POST", headers: { ...credentials(), authorization }, credentials: "same-origin" });
  if (!response.ok) throw new Error(response.status === 401 ? ("link" in credential ? "This link was used already, or is too old." : "That is not the password.") : await reason(response));
  const { key } = (await response.json()) as { key: string };
  localStorage.setItem(KEY, key);
  isSignedOut.value = false;
}
