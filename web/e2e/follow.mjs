// The page follows the session and the server: the model's name, what is read after a late sign-in, pictures, hidden characters.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inBrowser, picture, prompt } from "./browser.mjs";
import { importSession, makeMessages, show } from "./made.mjs";
import { start } from "./server.mjs";

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
// A context line, a changed one and one that is only added.
const PATCH = "@@ -1,2 +1,3 @@\n s\u202eame = '\u202e'\n-a\u202eb\n+a\u202ec\n+new = '\u202e' # \u2066";
const TEXT = "abc\u202edef &#8238; ghi\n\n| a | n |\n|---|---:|\n| b | 1 |\n\n- [x] done\n- [ ] open\n";

const server = await start();
try {
  await inBrowser(async (open, { browser, allow }) => {
    const { cwd } = JSON.parse(process.env.CODELOOP_START);
    await writeFile(join(cwd, "picture.png"), Buffer.from(DOT, "base64"));
    const page = await open({ url: server.link });
    await page.waitForSelector(".prompt-bar .picker:has-text('coder')");
    await page.click(".prompt-bar button:has-text('build')");
    await page.fill("dialog input", "plan");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".prompt-bar button:has-text('plan')");
    await prompt(page, "show the picture");
    await page.waitForSelector(".tool img.picture");
    await page.waitForSelector(".closing");
    await picture(page, "tool-picture");
    await page.waitForSelector(".prompt-bar button:has-text('plan')");
    await page.click("[aria-label='New session']");
    await page.waitForSelector(".prompt-bar button:has-text('build')"); // the choice was for the other session

    const messages = makeMessages(2);
    messages[1].parts[0].text = TEXT;
    messages[1].parts[1].state.output = messages[1].parts[1].state.metadata.output = "out\u202eput";
    messages[0].info.summary = { diffs: [{ file: "x\u202ey.py", patch: PATCH, additions: 2, deletions: 1, status: "modified" }] };
    const session = await importSession(page, "Turned \u202e around", messages);
    await show(page, session);
    await page.waitForSelector(".prose:has-text('abc')");
    await page.click(".tool-line:has-text('python3')");
    await page.waitForSelector(".output:has-text('out')");
    await page.click(".changed-file");
    await page.waitForSelector(".changed-card .row.add");
    const texts = () => page.evaluate(() => document.body.innerText + document.title + [...document.querySelectorAll("[title], [aria-label]")].map((each) => `${each.title} ${each.ariaLabel}`).join());
    assert.match(await texts(), /x\\u202ey\.py/);
    assert.match(await texts(), /s\\u202eame = '\\u202e'/);
    assert.match(await texts(), /new = '\\u202e' # \\u2066/);
    assert.doesNotMatch(await texts(), /[\u202a-\u202e\u2066]/);
    assert.match(await page.innerText(".prose"), /abc\\u202edef \\u202e ghi/);
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".prose td:last-child")).textAlign), "right");
    await picture(page, "hidden-shown");

    // Sessions are archived and deleted by their commands.
    const run = async (command) => {
      await page.fill("#prompt", command);
      await page.keyboard.press("Enter");
    };
    const removed = await importSession(page, "To be deleted", makeMessages(2));
    await show(page, removed);
    await page.waitForSelector(".session[aria-current]:has-text('To be deleted')");
    await run("/delete");
    await page.waitForSelector("dialog >> text=To be deleted");
    await picture(page, "delete");
    await page.click("dialog .danger");
    await page.waitForSelector(".session:has-text('To be deleted')", { state: "detached" });
    const kept = await importSession(page, "To be archived", makeMessages(2));
    await show(page, kept);
    await page.waitForSelector(".session[aria-current]:has-text('To be archived')");
    await run("/archive");
    await page.waitForSelector(".session:has-text('To be archived')", { state: "detached" });
    await show(page, session);
    await page.waitForSelector(".prose:has-text('abc')");

    // A deep link in a browser that signs in late: all is read after it.
    allow(/401/);
    const address = page.url();
    await browser.clearCookies();
    await page.evaluate(() => localStorage.clear());
    const late = await open({ url: address });
    await late.waitForSelector(".sign-in");
    assert.equal(await late.locator(".notice.error").count(), 0);
    await late.fill(".sign-in input", "a long password");
    await late.keyboard.press("Enter");
    await late.waitForSelector(".prose:has-text('abc')");
    await late.click(".prompt-bar .picker[title='Switch model']");
    await late.waitForSelector("dialog .choices li:has-text('coder')");
    await picture(late, "signed-in-late");
  });
} finally {
  server.running.kill("SIGKILL");
}
