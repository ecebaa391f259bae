// Keeps the page's own files, so that an installed page opens at once and says by itself that the server is away.
// Answers of the server are never kept.
const CACHE = "codeloop-shell-1";
const scope = self as unknown as {
  addEventListener(type: "install" | "activate" | "fetch", listener: (event: WorkerEvent) => void): void;
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
};

interface WorkerEvent extends Event {
  request: Request;
  respondWith(answer: Promise<Response>): void;
  waitUntil(work: Promise<unknown>): void;
}

/** Whether a request is for a file of the shell. */
function isShell(request: Request): boolean {
  const url = new URL(request.url);
  return request.method === "GET" && url.origin === location.origin && (url.pathname === "/" || /^\/web\/[\w.-]+$/.test(url.pathname));
}

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await fetch(request);
    if (fresh.ok) await cache.put(request, fresh.clone());
    return fresh;
  } catch (error) {
    const kept = await cache.match(request);
    if (kept) return kept;
    throw error;
  }
}

scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (event) => {
  if (isShell(event.request)) event.respondWith(answer(event.request));
});
