// Two pages on one session, a question, completions: both show the same, and what was typed is kept.
import assert from "node:assert/strict";
import { inBrowser, picture, prompt, stopTurn } from "./browser.mjs";

await inBrowser(async (open) => {
  const first = await open();
  await first.waitForSelector("#prompt");
  await prompt(first, "ask me");
  await first.waitForSelector(".question");
  const second = await open({ url: first.url() });
  await second.waitForSelector(".question");
  await picture(second, "question");
  await second.click("text=Half up");
  await second.click("button:has-text('Answer')");
  for (const page of [first, second]) await page.waitForSelector("strong:has-text('half up')");
  assert.equal(await first.locator(".ask").count(), 0);

  await first.fill("#prompt", "/mod");
  await first.waitForSelector(".completions >> text=/models");
  await first.keyboard.press("Enter");
  await first.waitForSelector("dialog >> text=Switch model");
  await first.keyboard.press("Escape");
  await first.locator("#prompt").pressSequentially("look at @ca");
  await first.waitForSelector(".completions >> text=cart.py");
  await first.keyboard.press("Tab");
  assert.equal(await first.inputValue("#prompt"), "look at @cart.py ");
  await first.fill("#prompt", "");

  await second.fill("#prompt", "not sent yet");
  await second.reload();
  await second.waitForSelector(".transcript >> text=half up");
  assert.equal(await second.inputValue("#prompt"), "not sent yet");
  await prompt(first, "say one word");
  await second.waitForSelector("text=Certainly.");
  await first.click("[aria-label='New session']");
  await prompt(first, "tell a long story");
  await first.waitForSelector("text=word-3");

  // What a page reads may be older than the events that come meanwhile: the turn has ended when the page gets it.
  const begun = [];
  let isOver = false;
  await second.route(/\/session\/(status|ses_\w+\/message)\b/, async (route) => {
    // Read whole at once: a reload of the page throws responses away, and may end the request itself.
    const response = await route.fetch().catch(() => null);
    if (response === null) return;
    const body = await response.body();
    const answer = { status: response.status(), headers: response.headers(), body };
    begun.push(route);
    while (!isOver) await new Promise((done) => setTimeout(done, 50));
    await route.fulfill(answer).catch(() => {});
  });
  await second.goto(first.url());
  const stream = second.waitForResponse(/global\/event/);
  await second.reload();
  await stream;
  while (begun.length < 2) await second.waitForTimeout(50);
  await stopTurn(first);
  await second.waitForTimeout(500);
  isOver = true;
  await second.waitForSelector("text=You stopped this turn.");
  await second.waitForSelector(".stop", { state: "detached" });
});
