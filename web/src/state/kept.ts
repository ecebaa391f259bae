// What stays in this browser. Where it keeps nothing, as for a page in a sandbox, the page works all the same.
import { effect, signal, type Signal } from "@preact/signals";

/** Read a setting; "" where there is none. */
export function readKept(name: string): string {
  try {
    return localStorage.getItem(`codeloop.${name}`) ?? "";
  } catch {
    return "";
  }
}

/** Keep a setting; "" removes it. */
export function writeKept(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(`codeloop.${name}`, value);
    else localStorage.removeItem(`codeloop.${name}`);
  } catch {
    // It holds until the page is closed.
  }
}

/** A setting that stays. */
export function keep<T extends string>(name: string, first: T): Signal<T> {
  const kept = signal((readKept(name) || first) as T);
  effect(() => writeKept(name, kept.value));
  return kept;
}
