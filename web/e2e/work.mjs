// A whole piece of work: signed in by the link, a prompt, a permission, the change, a review, undo and redo, a terminal.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { inBrowser, link, picture, prompt } from "./browser.mjs";

const cart = () => readFile(process.env.CODELOOP_FILE, "utf8");

await inBrowser(async (open, { browser, allow }) => {
  const page = await open({ size: "wide" });
  await page.waitForSelector("#prompt");
  await page.waitForFunction(() => !location.hash.includes("link"));
  await picture(page, "start");

  await prompt(page, "mend the total");
  await page.waitForSelector(".ask");
  assert.equal(await page.textContent(".ask-command"), "python3 test_cart.py");
  assert.match(await page.title(), /^\(1\) /);
  assert.equal(await page.textContent(".session.waits .session-age"), "waits");
  await picture(page, "permission");
  await page.waitForSelector(".ask.seen");
  await page.focus(".ask");
  await page.keyboard.press("s");
  // It allows more than this command, so that is said first.
  await page.waitForSelector(".ask-wider");
  await page.waitForSelector(".ask.seen");
  await page.focus(".ask");
  const replied = page.waitForRequest(/\/permission\/[^/]+\/reply/);
  await page.keyboard.press("s");
  assert.deepEqual((await replied).postDataJSON(), { reply: "always", scope: "session" });
  await page.waitForSelector(".closing");
  assert.equal(await page.textContent(".answer strong"), "one count");
  assert.match(await cart(), /zip\(prices, counts\)/);
  // What only looks is one line, which opens; a command shows its last line and how it ended.
  assert.equal(await page.locator(".tool.completed").count(), 4);
  assert.equal(await page.textContent(".explored .tool-words"), "1 file, 1 search");
  await page.click(".explored > .tool-line");
  await page.waitForSelector(".explored .tool-line:has-text('cart.py')");
  await page.click(".explored > .tool-line");
  assert.equal(await page.textContent(".tail"), "OK");
  await page.waitForSelector(".tool:has-text('python3') .tool-note:has-text('exit 0')");
  await page.click(".changed-card .changed-file");
  await page.waitForSelector(".changed-card .row.add");
  await page.click(".tool-line:has-text('python3')");
  await page.waitForSelector(".output:has-text('OK')");
  await picture(page, "answer");

  await page.click("[aria-label='Review changes']");
  await page.waitForSelector(".review .row.add");
  assert.equal(await page.textContent(".review .row.add mark"), "price * count for price, count in zip(prices, counts))");
  await picture(page, "review");
  await page.click(".review >> text=Comment");
  await page.fill(".comment textarea", "shorter names, please");
  await page.click(".comment button:has-text('Comment')");
  await page.waitForSelector(".thread >> text=Not sent yet");
  await picture(page, "review-comment");
  await page.click("text=Send as a prompt");
  await page.waitForSelector(".user-text:has-text('About @cart.py line 3')");
  await page.waitForSelector(".user-message .row.add");
  await page.waitForSelector(".user-text:has-text('shorter names, please')");
  await page.waitForSelector(".thread >> text=/Answered at/");
  await page.click(".thread >> text=Reply");
  await page.fill(".thread textarea", "and a docstring");
  await page.keyboard.press("Control+Enter");
  await page.check(".viewed-mark input");
  await page.reload();
  await page.click("[aria-label='Review changes']");
  await page.waitForSelector(".review-file.viewed");
  await page.uncheck(".viewed-mark input");
  await page.waitForSelector(".thread >> text=/Answered at/");
  await page.waitForSelector(".review-send >> text=1 comment not sent yet");
  await picture(page, "review-thread");
  await page.click(".thread >> text=Remove");
  await page.waitForSelector(".thread", { state: "detached" });
  await page.click("text=Two columns");
  await page.waitForSelector(".pair .side.add");
  await picture(page, "review-columns");
  await page.click("text=One column");
  await page.click("role=tab[name='Work tree']");
  await page.click(".hunk-actions >> text=Undo");
  await page.waitForSelector(".review >> text=Nothing has changed");
  assert.match(await cart(), /sum\(prices\) \* count/);
  allow(/400 \(Bad Request\)/);
  await page.click("[aria-label='Close the review']");

  await page.keyboard.press("Control+x");
  await page.keyboard.press("u");
  await page.waitForSelector("dialog >> text=Undo");
  await page.click("dialog button.primary");
  await page.waitForSelector(".undone");
  assert.equal(await page.locator(".user-message").count(), 1);
  // The prompt is back, unless something else is typed.
  await page.waitForFunction(() => /^About @cart.py line 3/.test(document.querySelector("#prompt").value));
  await page.fill("#prompt", "something else");
  await page.keyboard.press("Control+x");
  await page.keyboard.press("u");
  await page.waitForSelector("dialog >> text=Undo");
  await page.click("dialog button.primary");
  await page.waitForSelector(".user-message", { state: "detached" });
  assert.equal(await page.inputValue("#prompt"), "something else");
  await page.click(".undone >> text=Redo");
  await page.waitForSelector(".closing");

  // What is typed before the connection is there is sent when it is.
  const slowly = async (route) => {
    await new Promise((done) => setTimeout(done, 2_000));
    await route.continue();
  };
  await page.route("**/connect-token*", slowly);
  await page.click("[aria-label='Terminals']");
  await page.waitForSelector(".xterm-helper-textarea:focus");
  await page.keyboard.type("echo $((40 + 2)) is it\n");
  await page.waitForSelector(".xterm-rows >> text=42 is it");
  await page.unroute("**/connect-token*", slowly);
  await picture(page, "terminal");
  await page.click("[aria-label='Hide terminals']");
  await page.click("[aria-label='Terminals']");
  await page.waitForSelector(".xterm-rows >> text=42 is it");
  await page.click("[aria-label='Hide terminals']");

  await page.reload();
  await page.waitForSelector(".closing");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "answer-dark");

  allow(/401/);
  await browser.clearCookies();
  const second = await open({ url: link });
  await second.waitForSelector(".sign-in");
  await second.waitForSelector(".notice.error");
  assert.match(await second.textContent(".notice.error"), /used already/);
  await picture(second, "signed-out");
});
