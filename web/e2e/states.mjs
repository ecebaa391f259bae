// What a session does is said truly: while it is tried again, asks, waits, has subagents, is summarised, or was killed.
import assert from "node:assert/strict";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt, stopTurn } from "./browser.mjs";
import { start } from "./server.mjs";

const first = await start();
let second;
try {
  await inBrowser(async (open, { allow }) => {
    const page = await open({ url: first.link });
    const line = (kind, text = "") => page.waitForSelector(`.standing.${kind}:has-text('${text}')`);
    const isIdle = () => page.waitForSelector(".standing", { state: "detached" });
    await page.waitForSelector("#prompt");

    await prompt(page, "call a failing service");
    await line("retry", "the service is busy");
    assert.match(await page.textContent(".standing-words"), /^Retry \d in \d+ s: /);
    await audit(page, "state-retry");
    await stopTurn(page);
    await isIdle();

    await prompt(page, "tell a held story");
    await page.waitForSelector("text=word-4");
    await line("working");
    await prompt(page, "and then the other one");
    await page.waitForSelector(".user-turn:has-text('and then the other one') >> text=Waits: it is read at the next step");
    await line("working", "1 prompt waits");
    await picture(page, "state-queued");
    await page.click("text=Take it back");
    await page.waitForFunction(() => document.querySelector("#prompt").value === "and then the other one");
    await page.waitForSelector(".user-turn:has-text('and then the other one')", { state: "detached" });
    await page.keyboard.press("Enter");
    await line("working", "1 prompt waits");
    await stopTurn(page);
    await line("unread", "Stopped before the last prompt was read");
    await audit(page, "state-unread");
    await page.click("text=Take it back");
    await isIdle();
    await page.fill("#prompt", "");

    await prompt(page, "send a subagent");
    await line("subagents", "A subagent works");
    await picture(page, "state-subagent");
    await stopTurn(page);
    await isIdle();

    await page.fill("#prompt", "/compact");
    await page.keyboard.press("Enter");
    await line("compacting");
    await picture(page, "state-compacting");
    await isIdle();

    await prompt(page, "push it");
    await line("waits", "Waits for your answer");
    await page.waitForSelector(".tool.asked:has-text('Waits for you:')");
    assert.equal(await page.locator(".spinner").count(), 0);
    await page.click(".ask button:has-text('Allow once')");
    await page.waitForSelector("text=It went on.");
    await prompt(page, "mend the total");
    await page.waitForSelector(".tool.asked");
    allow(/fetching the script|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/);
    first.running.kill("SIGKILL");
    await line("lost");
    second = await start();
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await line("interrupted", "its program ended");
      await page.waitForSelector(".tool.dead:has-text('Interrupted:')");
      assert.equal(await page.locator(".spinner").count(), 0);
      assert.equal(await page.locator(".ask").count(), 0);
    }
    await audit(page, "state-interrupted");
    await page.click(".standing button:has-text('Go on')");
    await page.waitForSelector("text=Hello.");
    await page.waitForSelector("p:has-text('Interrupted: its program ended before the answer did.')");
    assert.doesNotMatch(await page.locator(".answer:has-text('Interrupted:')").innerText(), /You stopped/);
    await picture(page, "state-went-on");
  }, { bypassCSP: true }); // axe is no part of the page: the policy would refuse it
} finally {
  for (const each of [first, second]) each?.running.kill("SIGKILL");
}
