// The reference's web app, served by our server, is used as a person uses it. Prints "ok STEP" or what went wrong.

import assert from "node:assert/strict"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { chromium } from "playwright-core"

const { BASE_URL, PASSWORD, DIRECTORY, PROFILE, CHROMIUM, SHOTS } = process.env
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"]
const WAIT = 60_000
const context = await chromium.launchPersistentContext(PROFILE, {
  executablePath: CHROMIUM, headless: true, args: ARGS, viewport: { width: 1280, height: 800 },
  httpCredentials: { username: "opencode", password: PASSWORD },
})
const page = context.pages()[0]
page.setDefaultTimeout(WAIT)
const failures = []
const terminals = [] // what each terminal's connection has shown so far
page.on("websocket", (it) => {
  if (!/\/pty\//.test(it.url())) return
  const shown = { text: "" }
  terminals.push(shown)
  it.on("framereceived", ({ payload }) => (shown.text += payload))
})
page.on("response", (it) => { if (it.status() >= 400) failures.push(`${it.status()} ${it.request().method()} ${it.url()}`) })
page.on("requestfailed", (it) => {
  // A stream, or what a page that is left had asked for, ends so.
  if (it.failure()?.errorText !== "net::ERR_ABORTED") failures.push(`${it.failure()?.errorText} ${it.method()} ${it.url()}`)
})
page.on("pageerror", (error) => failures.push(`error in the page: ${error}`))
page.on("console", (it) => {
  if (/content security policy/i.test(it.text())) failures.push(it.text())
})

let count = 0
async function step(name, work) {
  count += 1
  try {
    await work()
    console.log(`ok ${count} ${name}`)
  } catch (error) {
    console.log(`FAILED ${count} ${name}: ${String(error.message ?? error).split("\n").slice(0, 6).join(" | ")}`)
  }
  if (SHOTS) await page.screenshot({ path: `${SHOTS}/${String(count).padStart(2, "0")}.png` })
}

const text = (words) => page.getByText(words).last().waitFor()
const button = (name) => page.getByRole("button", { name, exact: true }).last()
const input = () => page.locator('[contenteditable="true"]').last()
/** Wait for what the page shows in no words. */
async function until(isReached, otherwise) {
  for (const end = Date.now() + WAIT; Date.now() < end; await page.waitForTimeout(100)) if (await isReached()) return
  throw new Error(otherwise)
}
/** The page ignores Enter until it knows its model. */
const model = (name) => page.getByRole("button", { name }).last().waitFor()
async function say(words) {
  await input().click()
  await page.keyboard.type(words)
  await page.keyboard.press("Enter")
}
const credential = { authorization: `Basic ${Buffer.from(`opencode:${PASSWORD}`).toString("base64")}` }
/** Send what is typed, and wait until its turn is over: a shell line is refused while one runs. */
async function sendAndWait() {
  const sent = page.waitForResponse((it) => it.request().method() === "POST" && /\/session\/[^/]+\/(prompt_async|message|prompt)/.test(it.url()))
  await page.keyboard.press("Enter")
  await sent
  const status = `${BASE_URL}/session/status?directory=${encodeURIComponent(DIRECTORY)}`
  const working = async () => Object.keys(await (await fetch(status, { headers: credential })).json())
  await until(async () => (await working()).length === 0, "the turn does not end")
}
const project = `${BASE_URL}/${Buffer.from(DIRECTORY).toString("base64").replace(/=+$/, "")}/session`

await step("the home page opens", async () => {
  await page.goto(BASE_URL)
  await text("Add project")
})
await step("the address of a project opens a new session", async () => {
  await page.goto(project)
  await input().waitFor()
  await model("coder")
})
await step("a prompt is answered", async () => {
  await say("hello there")
  await text("Hello.")
})
await step("the address is the session's", async () => assert.match(page.url(), /session\/ses_/))
await step("the session has a title", () => text("A short title"))
const first = page.url()
await step("a tool asks for permission", async () => {
  await say("please write it")
  await text("Permission required")
})
await step("the answer goes on when it is allowed", async () => {
  await button("Allow once").click()
  await text("Done.")
})
await step("the review shows the changed files", async () => {
  await button("Toggle review").click()
  await text(/Files Changed 2/)
})
await step("the review closes", () => button("Toggle review").click())
await step("what fills the context is shown", async () => {
  await button("View context usage").click()
  await text(/Total Tokens/i)
})
await step("a permission is denied", async () => {
  await page.goto(first)
  await model("coder")
  await say("please write again")
  await button("Deny").click()
  await button("Deny").waitFor({ state: "detached" })
})
await step("a slash lists the commands", async () => {
  await input().click()
  await page.keyboard.type("/gre")
  await text("/greet")
})
await step("a command is run", async () => {
  await page.keyboard.press("Enter")
  await page.keyboard.type("Ada")
  await page.keyboard.press("Enter")
  await text("/greet Ada")
})
await step("an at sign lists files", async () => {
  await input().click()
  await page.keyboard.type("@main")
  await text("main.py")
})
await step("a file goes along with a prompt", async () => {
  await page.keyboard.press("Enter")
  await page.keyboard.type(" read this file")
  await sendAndWait()
  await text("read this file")
})
await step("a shell line is run", async () => {
  await input().click()
  await page.keyboard.type("!")
  await page.keyboard.type("echo shelled $((40 + 2))")
  await page.keyboard.press("Enter")
  await page.getByText("echo shelled").last().click()
  await text("shelled 42")
})
await step("the models are listed", async () => {
  await page.getByRole("button", { name: "coder" }).last().click()
  await text("talker")
})
await step("another model is chosen", async () => {
  await page.getByText("talker").last().click()
  await model("talker")
})
await step("a prompt goes to that model", async () => {
  await say("who answers now")
  await text("talker")
})
await step("a terminal opens", async () => {
  await page.keyboard.press("Control+Backquote")
  await page.locator("canvas, .xterm").last().waitFor()
})
await step("a command runs in it", async () => {
  const typed = join(DIRECTORY, "typed.txt")
  await until(() => terminals.some((each) => each.text), "the shell shows no prompt")
  await page.keyboard.type("echo typed > typed.txt\n")
  // The screen is a canvas: only the file tells.
  await until(() => existsSync(typed) && readFileSync(typed, "utf8") === "typed\n", "nothing was typed into the shell")
})
await step("the terminal closes", () => page.keyboard.press("Control+Backquote"))
await step("the palette opens", async () => {
  await page.keyboard.press("Control+k")
  await page.getByRole("dialog").last().waitFor()
})
await step("the palette closes", async () => {
  await page.keyboard.press("Escape")
  await page.getByRole("dialog").last().waitFor({ state: "detached" })
})
await step("a new session begins", async () => {
  await button("New session").click()
  await input().waitFor()
})
await step("it is answered, too", async () => {
  await say("hello again")
  await text("Hello.")
})
await step("the home page keeps both sessions as tabs", async () => {
  await button("Home").click()
  await text("Add project")
  await until(async () => (await page.getByText("A short title").count()) === 2, "not both titles are there")
})
await step("the settings open", async () => {
  await page.mouse.move(640, 700)
  await page.getByRole("button", { name: "Settings" }).last().click()
  await text("General")
})
await step("the settings list the providers", async () => {
  await page.getByText("Providers", { exact: true }).last().click()
  await text(/connected|mine/i)
})
await step("a reload shows the session as it was", async () => {
  await page.goto(first)
  await page.reload()
  await text("who answers now")
  await text("echo shelled")
})
await step("no request failed, nothing was forbidden to the page", async () => assert.deepEqual(failures, []))
await context.close()
