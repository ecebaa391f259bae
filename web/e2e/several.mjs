// Models side by side, of which files are kept; a goal and its state; a plan whose lines are commented on.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt } from "./browser.mjs";

async function choose(page, command) {
  await page.keyboard.press("Control+k");
  await page.fill("dialog input", command);
  await page.keyboard.press("Enter");
}

await inBrowser(async (open) => {
  const page = await open();
  await page.waitForSelector("#prompt");
  await choose(page, "compare models");
  await page.fill("[aria-label='Prompt for all models']", "mend it quietly");
  await page.fill("[aria-label='Check']", "grep -q zip cart.py");
  // `all` does not wait, and the models come from the server.
  await page.waitForSelector(".compare-models input >> nth=1");
  for (const box of await page.locator(".compare-models input").all()) await box.check();
  await page.click("text=Start 2 models");
  await page.waitForSelector(".compare .good >> nth=1");
  await page.waitForSelector(".compare-file >> nth=1");
  await page.click(".compare-file .link >> nth=1");
  await page.waitForSelector("dialog .diff");
  await audit(page, "compare");
  // The server is slow: the dialog is open before the page knows where it is.
  let answer;
  const answered = new Promise((resolve) => (answer = resolve));
  await page.route("**/path", async (route) => {
    await answered;
    await route.continue();
  });
  await page.reload();
  await page.waitForSelector("#prompt");
  await choose(page, "compare models");
  await page.waitForSelector("[aria-label='Prompt for all models']");
  answer();
  await page.click(".compare-file input >> nth=1");
  await page.click("text=Keep the chosen files");
  await page.waitForSelector("dialog [role=status]");
  assert.match(await page.innerText("dialog [role=status]"), /holds cart.py/);
  assert.match(await readFile(process.env.CODELOOP_FILE, "utf8"), /zip\(prices, counts\)/);
  await picture(page, "compare");
  await page.click("text=Remove the work trees");
  await page.waitForSelector(".compare-models");
  await page.keyboard.press("Escape");

  await choose(page, "work for a goal");
  await page.fill("[aria-label='Goal']", "say one word");
  await page.fill("[aria-label='Checks']", "test -e missing.txt");
  await page.fill("[aria-label='Rounds']", "1");
  await page.click("dialog button.primary");
  await page.waitForSelector(".goal .count:has-text('Not reached')");
  await page.click(".goal summary");
  await page.waitForSelector("text=The limit of 1 round is reached.");
  await audit(page, "goal");

  await choose(page, "new session");
  await choose(page, "switch agent");
  await page.fill("dialog input", "plan");
  await page.keyboard.press("Enter");
  await prompt(page, "write a plan");
  await page.click("text=Comment on its lines");
  await page.click(".review .number[data-number='3']");
  await page.fill(".comment textarea", "Why half even?");
  await page.click("text=Comment on line 3");
  await page.click(".review-send button");
  await page.waitForSelector(".question:has-text('Half up now.')");
  await page.waitForSelector(".plan-threads:has-text('Open')");
  await picture(page, "plan");
  await page.click(".question label:has-text('Stay with')");
  await page.click("button:has-text('Answer')");
  await page.waitForSelector(".review .remark-state:has-text('Answered')");
  await page.waitForSelector("text=I plan on.");
});
