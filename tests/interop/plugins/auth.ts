// The plugin that signs in at a service of models, with answers of a service that is only played.

export { CopilotAuthPlugin } from "MODULES/opencode-copilot-auth/index.mjs"

const ANSWERS: Record<string, object> = {
  "https://github.com/login/device/code": {
    verification_uri: "https://github.com/login/device",
    user_code: "ABCD-1234",
    device_code: "device",
    interval: 0,
  },
  "https://github.com/login/oauth/access_token": { access_token: "refreshing" },
  "https://api.github.com/copilot_internal/v2/token": { token: "short-lived", expires_at: 9999999999 },
}

const original = globalThis.fetch
globalThis.fetch = (async (input: any, init?: any) => {
  const url = String(input)
  if (url in ANSWERS) return Response.json(ANSWERS[url])
  const sent = new Headers(init?.headers)
  if (url.startsWith("https://api.githubcopilot.com") && sent.get("authorization") !== "Bearer short-lived")
    return Response.json({ error: { message: "no token" } }, { status: 401 })
  return original(url.replace("https://api.githubcopilot.com", "SERVICE"), init)
}) as typeof fetch
