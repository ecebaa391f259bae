// Starts the page: signs the browser in by the link in the address, reads the state, follows the events.
import "./text/hidden";
import { render } from "preact";
import { applyEvents } from "./state/events";
import { loadSessions, loadStates, reload } from "./state/load";
import { followDoubts } from "./state/now";
import { showAddress } from "./state/route";
import { place } from "./state/store";
import { fail } from "./state/ui";
import { warmUp } from "./text/markdown";
import { isSignedOut, signIn } from "./wire/api";
import { follow, waitForStream } from "./wire/stream";
import { App } from "./view/app";

/** Exchange the one-time link in the address, and take it out of the address and the history. */
async function useLink(): Promise<void> {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (!link) return;
  history.replaceState(null, "", location.pathname);
  await signIn({ link });
}

async function start(): Promise<void> {
  try {
    await showAddress();
    await loadSessions(place.value.directory);
  } catch (error) {
    fail(error);
  }
}

interface ScriptPolicies {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string };
}

/** Makes the address of the one script that the page starts, as a type that the browser lets through. */
const policy = (window as unknown as { trustedTypes?: ScriptPolicies }).trustedTypes?.createPolicy("codeloop", { createScriptURL: () => "/web/worker.js" });

/** Have the worker keep the page's own files. */
async function keepShell(): Promise<void> {
  if (!("serviceWorker" in navigator) || !isSecureContext) return;
  await navigator.serviceWorker.register(policy ? policy.createScriptURL("") : "/web/worker.js", { scope: "/" }).catch(() => undefined);
}

/** Some proxies keep the beginning of a stream: what is read until it is open is read again then. */
const STREAM_WAIT = 2_000;

/** Whether the first reading has begun. */
let isStarted = false;

async function begin(): Promise<void> {
  await useLink().catch(fail);
  await new Promise((resolve) => setTimeout(resolve)); // a task of its own for the first drawing
  const page = document.querySelector("#app")!;
  page.replaceChildren(); // the frame that was seen until here
  render(<App onSignedIn={() => void start()} />, page);
  addEventListener("hashchange", () => void showAddress().catch(fail));
  warmUp();
  followDoubts();
  void follow({
    onEvents: applyEvents,
    // Until a directory is shown, nothing was read that may be out of date; but reading it may have failed.
    onResync: () => void (place.value.directory ? reload().catch(fail) : isStarted && start()),
    onReturn: () => void loadStates().catch(fail),
  });
  // What happens before the stream is open is not heard of, so what is read before that may miss it.
  await waitForStream(STREAM_WAIT);
  isStarted = true;
  await start();
  if (!isSignedOut.value) await keepShell();
}

void begin();
