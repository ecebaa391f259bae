// The `client` of plugins: the operations of codeloop by their names, or by route, over the connection of the host.
// The shapes are those of the published client: `client.session.get({ path: { id } })` gives `{ data, error }`.

/** Where plugins are told that the server is. Nothing listens there: what they fetch from it takes the same way. */
export const SERVER = new URL("http://localhost:4096/")

const PARAMETER = /\{(\w+)\}/g
const SHARED_QUERY = new Set(["directory", "workspace"])
// Names of the published client that are not those of operations here.
const OLD_NAMES = new Map([
  ["postSessionIdPermissionsPermissionId", "permission.respond"],
  ["session.promptAsync", "session.prompt_async"],
])

/** Return the client. `operations`: rows of id, method and route. `call(operation, path, query, body)` carries one out. */
export function makeClient(call, operations, subscribe) {
  const byName = new Map(operations.map(([id, method, route]) => [id, { id, method, route }]))

  async function perform(id, options = {}) {
    const row = byName.get(OLD_NAMES.get(id) ?? id)
    const { path, query, body } = partsOf(row, options)
    let response
    try {
      const data = await call(row?.id ?? OLD_NAMES.get(id) ?? id, path, query, body)
      response = new Response(null, { status: 200 })
      return options.responseStyle === "data" ? data : { data, error: undefined, request: undefined, response }
    } catch (failure) {
      if (options.throwOnError) throw failure
      const error = failure.data ?? { name: "UnknownError", data: { message: failure.message } }
      response = new Response(null, { status: error.name === "NotFoundError" ? 404 : 400 })
      return { data: undefined, error, request: undefined, response }
    }
  }

  async function byRoute(method, { url, path = {}, query, body, ...rest }) {
    const filled = url.replace(PARAMETER, (_, name) => encodeURIComponent(path[name]))
    const found = matching(operations, method, filled)
    if (!found) return { data: undefined, error: { name: "NotFoundError", data: { message: `No operation ${method} ${url}.` } } }
    return perform(found.id, { ...rest, path: found.path, query, body })
  }

  const routes = Object.fromEntries(
    ["get", "post", "put", "patch", "delete"].map((method) => [method, (options) => byRoute(method.toUpperCase(), options)]),
  )
  const interceptor = { use: () => 0, eject: () => {}, update: () => 0 }
  const raw = {
    ...routes,
    request: (options) => byRoute(options.method ?? "GET", options),
    getConfig: () => ({ baseUrl: SERVER.href.replace(/\/$/, ""), fetch: globalThis.fetch, headers: {} }),
    setConfig: (config) => config,
    interceptors: { request: interceptor, response: interceptor, error: interceptor },
  }
  // `then`: a client that is awaited is not a promise.
  const special = { _client: raw, client: raw, then: undefined, toJSON: undefined }
  const streams = new Set(["event.subscribe", "global.event"])

  // What begins the name of an operation, such as `session`, is an object; anything else may be called.
  const namespaces = new Set(["", "event", ...operations.flatMap(([id]) => id.split(".").map((_, at, parts) => parts.slice(0, at).join(".")))])
  const node = (name) =>
    new Proxy(namespaces.has(name) ? {} : () => {}, {
      get: (target, part) => {
        if (typeof part === "symbol" || part in special) return special[part]
        if (part === "bind" || part === "call" || part === "apply") return target[part]
        return node(name ? `${name}.${part}` : part)
      },
      apply: (_, __, [options]) => (streams.has(name) ? Promise.resolve({ stream: subscribe() }) : perform(name, options)),
    })
  return { client: node(""), byRoute }
}

/** Return path, query and body of a call, from `{path, query, body}` or from one flat object of parameters. */
function partsOf(row, options) {
  const names = [...(row?.route ?? "").matchAll(PARAMETER)].map(([, name]) => name)
  if ("path" in options || "query" in options || "body" in options) {
    const given = { ...options.path }
    const path = {}
    for (const name of names) if (name in given) path[name] = take(given, name)
    for (const name of names) if (!(name in path)) path[name] = take(given, "id" in given ? "id" : Object.keys(given)[0])
    return { path: row ? path : given, query: options.query, body: options.body }
  }
  const [path, query, body] = [{}, {}, {}]
  for (const [name, value] of Object.entries(options)) {
    if (name === "throwOnError" || name === "headers" || name === "signal" || name === "responseStyle") continue
    const place = names.includes(name) ? path : SHARED_QUERY.has(name) || !row || row.method === "GET" ? query : body
    place[name] = value
  }
  return { path, query, body: Object.keys(body).length ? body : undefined }
}

/** Remove a value from an object, and return it. */
function take(object, name) {
  const value = object[name]
  delete object[name]
  return value
}

/** Return the operation of a route with the values in the path; of several, the one with the fewest parameters. */
function matching(operations, method, address) {
  const pathname = address.split("?")[0]
  let best
  for (const [id, its, route] of operations) {
    if (its !== method) continue
    const names = [...route.matchAll(PARAMETER)].map(([, name]) => name)
    const match = new RegExp(`^${route.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(PARAMETER, "([^/]+)")}/?$`).exec(pathname)
    if (!match || (best && best.names.length <= names.length)) continue
    best = { id, names, path: Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(match[at + 1])])) }
  }
  return best
}

/** Make `fetch` of this process answer requests to `SERVER` itself, so that clients that plugins make reach us too. */
export function answerServer(byRoute, subscribe) {
  const original = globalThis.fetch
  const ours = async (input, init) => {
    const request = input instanceof Request && !init ? input : undefined
    const url = new URL(request ? request.url : input instanceof Request ? input.url : String(input), SERVER)
    if (url.origin !== SERVER.origin) return original(input, init)
    const asked = request ?? new Request(input, init)
    if (/^\/(global\/)?event$/.test(url.pathname)) return eventResponse(subscribe())
    const text = await asked.text()
    const options = { url: url.pathname, query: Object.fromEntries(url.searchParams), body: text ? JSON.parse(text) : undefined }
    const { data, error, response } = await byRoute(asked.method, options)
    if (error) return Response.json(error, { status: response?.status ?? 404 })
    return data === undefined ? new Response(null, { status: 204 }) : Response.json(data)
  }
  globalThis.fetch = Object.assign(ours, original)
}

function eventResponse(stream) {
  const text = new TextEncoder()
  const body = new ReadableStream({
    async pull(controller) {
      const { value, done } = await stream.next()
      if (done) controller.close()
      else controller.enqueue(text.encode(`data: ${JSON.stringify(value)}\n\n`))
    },
    cancel: () => stream.return(),
  })
  return new Response(body, { headers: { "content-type": "text/event-stream" } })
}
