// A real browser on the page that CODELOOP_LINK leads to. Fails on any error that the page or its console reports.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const SIZES = { desktop: { width: 1280, height: 820 }, wide: { width: 1600, height: 950 }, phone: { width: 360, height: 740 } };

export const link = process.env.CODELOOP_LINK;
const pictures = process.env.CODELOOP_PICTURES;

/** Run `work(open)` in a fresh browser; `open(options)` gives a page of it. `options`: further ones of the browser. */
export async function inBrowser(work, options = {}) {
  const folder = await mkdtemp(join(tmpdir(), "codeloop-web-"));
  const browser = await chromium.launchPersistentContext(folder, { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args: FLAGS, viewport: SIZES.desktop, ...options });
  // Two slow cores with other work may take a minute for what takes a second elsewhere.
  browser.setDefaultTimeout(120_000);
  const errors = [];
  const allowed = [];
  browser.on("page", (page) => watch(page, errors));
  const open = async ({ size = "desktop", scheme = "light", url = link } = {}) => {
    const page = await browser.newPage();
    await page.setViewportSize(SIZES[size]);
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.goto(url);
    return page;
  };
  try {
    await work(open, { browser, allow: (pattern) => allowed.push(pattern) });
    const foreign = errors.filter((error) => !allowed.some((pattern) => pattern.test(error)));
    assert.deepEqual(foreign, [], "the page reported errors");
  } finally {
    await browser.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function watch(page, errors) {
  page.on("pageerror", (error) => errors.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && errors.push(`console: ${message.text()} ${message.location().url}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (/^https?:$/.test(url.protocol) && url.hostname !== "127.0.0.1") errors.push(`request to ${url.origin}`);
  });
}

/** Keep a picture where CODELOOP_PICTURES says, if it does. */
export async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** Stop the turn of the page's session with Escape, pressed twice; again, where the second press came too late. */
export async function stopTurn(page) {
  const ends = page.locator("text=You stopped this turn.");
  const before = await ends.count();
  for (let tries = 0; tries < 12 && (await ends.count()) === before; tries++) {
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await ends.nth(before).waitFor({ timeout: 10_000 }).catch(() => undefined);
  }
  await ends.nth(before).waitFor();
}

/** Type a prompt and send it. */
export async function prompt(page, text) {
  await page.fill("#prompt", text);
  await page.keyboard.press("Enter");
}
