// Two pages on one session, a question, completions: both show the same, and what was typed is kept.
import assert from "node:assert/strict";
import { inBrowser, link, picture, prompt, stopTurn } from "./browser.mjs";

const credentials = (page) => page.evaluate(() => ({ "x-codeloop-key": localStorage.getItem("codeloop.key") }));

/** Keep a page's requests waiting until what is returned is called. */
async function hold(page, pattern) {
  let free;
  const isFree = new Promise((resolve) => (free = resolve));
  await page.route(pattern, (route) => isFree.then(() => route.continue()));
  return free;
}

await inBrowser(async (open) => {
  // What is typed before the page knows where it is stays in the box, and so does what is typed after the first prompt.
  const first = await open({ url: "about:blank" });
  const listen = await hold(first, "**/global/event");
  const locate = await hold(first, "**/path");
  const begin = await hold(first, ({ pathname }) => pathname === "/session");
  await first.goto(link);
  await first.fill("#prompt", "ask me");
  const isPlaced = first.waitForRequest(/\/permission$/);
  locate();
  await isPlaced;
  await first.waitForTimeout(500);
  await first.keyboard.press("Enter");
  await first.fill("#prompt", "and then");
  begin();
  // What is asked before the page hears of anything is seen as well.
  await first.waitForResponse(/prompt_async/);
  await first.waitForFunction(async (headers) => (await (await fetch("/question", { headers })).json()).length > 0, await credentials(first));
  listen();
  await first.waitForSelector(".question");
  assert.equal(await first.inputValue("#prompt"), "and then");
  await first.fill("#prompt", "");
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
