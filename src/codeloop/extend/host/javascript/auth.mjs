// Signing in with a plugin, and requests to a model that go through a plugin's own `fetch`.

/** Carry out one step of a plugin's `auth` hook: `authorize`, `callback`, or `loader`. */
export function authStep(extension, message) {
  const { auth } = extension.hooks.find((made) => made.auth) ?? {}
  if (!auth) throw Object.assign(new Error("It has no auth hook."), { kind: "missing" })
  // `started`: what `authorize` made, by method; `current`: the credential that the loader reads; `fetch`: the plugin's.
  extension.signIn ??= { started: new Map(), current: undefined, fetch: undefined }
  return STEPS[message.step](auth, extension.signIn, message)
}

/** Whether the condition of a prompt holds: an input equals a value (`op`: "eq") or differs from it. */
const holds = ({ key, op, value }, inputs) => (inputs[key] === value) === (op === "eq")

const STEPS = {
  async authorize(auth, signIn, { method = 0, inputs }) {
    const chosen = auth.methods[method]
    for (const { key, message, validate, condition, when } of chosen.prompts ?? []) {
      if (condition?.(inputs ?? {}) === false || (when && !holds(when, inputs ?? {}))) continue
      const wrong = validate?.(inputs?.[key] ?? "")
      if (wrong) throw Object.assign(new Error(`${message}: ${wrong}`), { kind: "invalid" })
    }
    const made = await chosen.authorize?.(inputs ?? {})
    if (chosen.type === "api") return made ?? { type: "success" }
    signIn.started.set(method, made)
    return { url: made.url, instructions: made.instructions, method: made.method }
  },

  async callback(_auth, signIn, { method = 0, code = "" }) {
    const started = signIn.started.get(method)
    if (!started) throw Object.assign(new Error("Nothing was started: authorize first."), { kind: "missing" })
    signIn.started.delete(method)
    return started.method === "code" ? started.callback(code) : started.callback()
  },

  /** Return what the plugin sets for requests; `fetch` is only said to be there, as it stays in this process. */
  async loader(auth, signIn, { credential, provider }) {
    signIn.current = credential
    const { fetch, ...options } = (await auth.loader?.(async () => signIn.current, provider)) ?? {}
    signIn.fetch = fetch
    return { options: JSON.parse(JSON.stringify(options)), fetch: typeof fetch === "function" }
  },
}

/** Send a request through the plugin's `fetch`, and hand on its status, headers and chunks as they come. */
export async function fetchThrough(extension, { id, request, credential }, signal, channel) {
  const { signIn } = extension
  if (!signIn?.fetch) throw Object.assign(new Error("Its loader gave no fetch."), { kind: "missing" })
  if (credential) signIn.current = credential
  const { url, method, headers, body } = request
  const response = await signIn.fetch(url, { method, headers, body, signal })
  // They describe the body as it was sent; `fetch` has decoded it.
  const told = [...response.headers].filter(([name]) => name !== "content-encoding" && name !== "content-length")
  channel.send({ type: "response", id, status: response.status, headers: told })
  if (response.body) {
    for await (const chunk of response.body) channel.send({ type: "chunk", id, data: Buffer.from(chunk).toString("base64") })
  }
  return null
}
