// Our page beside another web app on the same sessions, in the same browser: until something is seen, and how long tasks are.
import { chromium } from "playwright-core";
import { FLAGS } from "./browser.mjs";
import { importSession, makeMessages } from "./made.mjs";
import { trace } from "./trace.mjs";

const { CODELOOP_LINK, CODELOOP_OTHER, CODELOOP_PASSWORD, CHROMIUM, CODELOOP_ROUNDS = "5", CODELOOP_MESSAGES = "10000" } = process.env;
const ours = new URL(CODELOOP_LINK).origin;
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];

const browser = await chromium.launch({ executablePath: CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS });
const viewport = { width: 1280, height: 820 };
const signedIn = await browser.newContext({ viewport });
const page = await signedIn.newPage();
await page.goto(CODELOOP_LINK);
const long = await importSession(page, "A long one", makeMessages(Number(CODELOOP_MESSAGES)));
const storageState = await signedIn.storageState();
const credentials = { viewport, httpCredentials: { username: "opencode", password: CODELOOP_PASSWORD } };
const folder = Buffer.from(long.directory).toString("base64").replace(/=+$/, "");
const apps = { ours: { options: { viewport, storageState }, url: `${ours}/#${new URLSearchParams({ dir: long.directory, session: long.id })}` } };
if (CODELOOP_OTHER) apps.other = { options: credentials, url: `${CODELOOP_OTHER}/${folder}/session/${long.id}` };

/** Open a page as a browser does that has not seen it. */
async function visit({ options, url }, work) {
  const context = await browser.newContext(options);
  const fresh = await context.newPage();
  try {
    return await work(fresh, () => fresh.goto(url, { waitUntil: "load" }));
  } finally {
    await context.close();
  }
}

const paint = (app) =>
  visit(app, async (fresh, go) => {
    await go();
    await fresh.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0, null, { timeout: 60_000 });
    return fresh.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  });

const tasks = (app) =>
  visit(app, async (fresh, go) => {
    const last = `message ${Number(CODELOOP_MESSAGES) - 1}:`;
    const opened = await trace(fresh, async () => {
      await go();
      await fresh.waitForFunction((text) => document.body.innerText.includes(text), last, { timeout: 120_000 });
      await fresh.waitForTimeout(1_000);
    });
    await fresh.mouse.move(640, 400);
    const scrolled = await trace(fresh, async () => {
      for (let n = 0; n < 200; n++) {
        await fresh.mouse.wheel(0, -600);
        await fresh.waitForTimeout(16);
      }
      await fresh.waitForTimeout(500);
    });
    return { open: opened.worst[0].ms, scroll: scrolled.worst[0].ms };
  });

const figures = {};
const paints = Object.fromEntries(Object.keys(apps).map((name) => [name, []]));
for (let round = 0; round < Number(CODELOOP_ROUNDS); round++) for (const [name, app] of Object.entries(apps)) paints[name].push(await paint(app));
for (const [name, app] of Object.entries(apps)) {
  figures[name] = { paint: Math.round(median(paints[name])) };
  try {
    Object.assign(figures[name], await tasks(app));
  } catch (error) {
    console.error(name, String(error).slice(0, 300));
  }
}
console.log(JSON.stringify(figures));
await browser.close();
