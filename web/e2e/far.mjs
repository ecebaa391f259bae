// Lists ask the server: what is found is reached however far above it is, and the oldest of many sessions is found.
import assert from "node:assert/strict";
import { inBrowser, picture } from "./browser.mjs";
import { importSession, makeMessages, show } from "./made.mjs";

const MESSAGES = 2_400;
const SESSIONS = 1_010;

/** Make sessions, oldest first. */
const makeSessions = (page, count) =>
  page.evaluate(async (wanted) => {
    const headers = { "x-codeloop-key": localStorage.getItem("codeloop.key"), "content-type": "application/json" };
    const make = (title) => fetch("/session", { method: "POST", headers, body: JSON.stringify({ title }) });
    await make("The very first of them");
    for (let made = 0; made < wanted; made += 10) await Promise.all(Array.from({ length: 10 }, (_, index) => make(`Session ${made + index}`)));
  }, count);

await inBrowser(async (open) => {
  const page = await open();
  await page.waitForSelector("#prompt");
  const session = await importSession(page, "A long one", makeMessages(MESSAGES));
  await show(page, session);
  await page.waitForSelector(`text=message ${MESSAGES - 2}:`);

  await page.keyboard.press("Control+f");
  await page.fill("dialog input", "message 40:");
  await page.waitForSelector("dialog .choices li:has-text('message 40:')");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".user-text:has-text('message 40:')");
  const box = await page.locator(".user-text:has-text('message 40:')").boundingBox();
  assert.ok(box.y > 0 && box.y < 820, `it is at ${box.y}`);
  await picture(page, "found-far");

  await page.reload();
  await page.waitForSelector(`text=message ${MESSAGES - 2}:`);
  await page.keyboard.press("Control+x");
  await page.keyboard.press("g");
  await page.fill("dialog input", "message 200:");
  await page.waitForSelector("dialog .choices li:has-text('message 200:')");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".user-text:has-text('message 200:')");

  await makeSessions(page, SESSIONS);
  const sizes = [];
  page.on("response", (response) => {
    const path = new URL(response.url()).pathname;
    if (path === "/session" || path === "/session/everything") sizes.push([path, response.headers()["content-encoding"]]);
  });
  await page.reload();
  await page.waitForSelector(".sidebar >> text=Show older sessions");
  assert.deepEqual(sizes, [["/session/everything", "gzip"]]);
  await page.fill("[aria-label='Search sessions']", "very first");
  await page.waitForSelector(".session:has-text('The very first of them')");
  await page.fill("[aria-label='Search sessions']", "");
  await page.keyboard.press("Control+x");
  await page.keyboard.press("l");
  await page.fill("dialog input", "very first");
  await page.waitForSelector("dialog .choices li:has-text('The very first of them')");
  await picture(page, "sessions-far");
});
