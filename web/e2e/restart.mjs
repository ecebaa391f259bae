// The server is killed in the middle of an answer and started again: the page says so, keeps what was typed, and goes on.
import assert from "node:assert/strict";
import { inBrowser, picture, prompt } from "./browser.mjs";
import { start } from "./server.mjs";

const first = await start();
let second;
try {
  await inBrowser(async (open, { allow }) => {
    const page = await open({ url: first.link });
    await page.waitForSelector("#prompt");
    await prompt(page, "say one word");
    await page.waitForSelector("text=Certainly.");
    allow(/fetching the script|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
    first.running.kill("SIGKILL");
    await page.waitForSelector(".connection");
    await page.fill("#prompt", "ask me");
    await picture(page, "lost");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".notice.error");
    assert.equal(await page.inputValue("#prompt"), "ask me");
    second = await start();
    await page.waitForSelector(".connection", { state: "detached" });
    await page.focus("#prompt");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".question");
    await page.click("text=Half even");
    await page.click("button:has-text('Answer')");
    await page.waitForSelector("strong:has-text('half up')");
    assert.equal(await page.locator(".user-message").count(), 2);
  });
} finally {
  for (const each of [first, second]) each?.running.kill("SIGKILL");
}
