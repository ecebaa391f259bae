// Questions are answered on purpose only: what is typed, held down or repeated while one appears answers nothing and is kept.
import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt } from "./browser.mjs";

const isFile = (name) => access(join(dirname(process.env.CODELOOP_FILE), name)).then(() => true, () => false);
const typed = (page) => page.inputValue("#prompt");
const hasFocus = (page, selector) => page.waitForFunction((wanted) => document.activeElement?.matches(wanted), selector);

/** Sends a prompt, and waits for the question without touching a key since. */
async function ask(page, text) {
  await page.waitForSelector("#prompt[placeholder^='What should']");
  await prompt(page, text);
  await page.waitForSelector(".ask");
}

await inBrowser(async (open) => {
  const page = await open();
  await page.waitForSelector("#prompt");

  // A sentence that is typed on, from before the question is there and past the time from which keys count.
  await prompt(page, "push it");
  const sentence = "yes, and then add the changelog";
  await page.keyboard.type(sentence.slice(0, 4), { delay: 30 });
  await page.waitForSelector(".ask");
  await page.keyboard.type(sentence.slice(4), { delay: 30 });
  await page.waitForSelector(".ask.seen");
  await page.keyboard.type(" and all");
  assert.equal(await typed(page), `${sentence} and all`);
  assert.equal(await page.locator(".ask").count(), 1);
  await picture(page, "ask-typing");

  // Escape leads to the question; a word that begins with one of its letters is a word.
  await page.keyboard.press("Escape");
  await hasFocus(page, ".ask");
  await page.keyboard.type("always", { delay: 10 });
  assert.equal(await typed(page), `${sentence} and allalways`);
  await hasFocus(page, "#prompt");
  assert.equal(await page.locator(".ask-wider").count(), 0);

  // "Always" would allow more than what is asked: it is said, and asked once more, with its own time to be seen.
  await page.keyboard.press("Escape");
  await page.keyboard.press("a");
  await page.waitForSelector(".ask-wider:has-text('git push *')");
  await audit(page, "ask-wider");
  await page.waitForSelector(".ask.seen");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".ask-wider", { state: "detached" });
  await page.waitForSelector(".ask.seen");
  await page.keyboard.press("n");
  await page.fill("[aria-label='What to do instead']", "not yet");
  await page.waitForSelector(".ask.seen");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".tool-error:has-text('not yet')");
  await hasFocus(page, "#prompt");
  assert.equal(await typed(page), `${sentence} and allalways`);
  await page.fill("#prompt", "");

  // A key that is held down answers one question, not those that take its place.
  await ask(page, "make three files");
  await hasFocus(page, ".ask");
  await page.waitForSelector(".ask.seen");
  await page.keyboard.down("y");
  await page.waitForSelector(".ask-command:has-text('file-2')");
  await page.waitForSelector(".ask.seen");
  for (let times = 0; times < 5; times++) await page.keyboard.down("y");
  await page.waitForTimeout(400); // longer than a lone letter waits
  assert.equal(await page.textContent(".ask-command"), "touch file-2.txt");
  await page.keyboard.up("y");
  // Nor does a second click, and what is typed after an answer is in the box.
  await page.dblclick(".ask button:has-text('Allow once')");
  await page.waitForSelector(".ask-command:has-text('file-3')");
  await page.keyboard.type("go on", { delay: 20 });
  assert.equal(await typed(page), "go on");
  assert.deepEqual([await isFile("file-1.txt"), await isFile("file-2.txt"), await isFile("file-3.txt")], [true, true, false]);
  await page.click(".ask button:has-text('Allow once')");
  await page.waitForSelector("text=The files are made.");
  assert.equal(await typed(page), "go on");
  await hasFocus(page, "#prompt");
  await page.fill("#prompt", "");

  // Two questions come one after the other, with numbers as keys; their buttons are always in sight.
  await page.setViewportSize({ width: 360, height: 640 });
  await ask(page, "ask two things");
  await page.waitForSelector(".ask.seen:has-text('Question 1 of 2')");
  assert.equal(await page.locator(".question").count(), 1);
  assert.ok(await page.locator(".ask .primary").evaluate((button) => button.getBoundingClientRect().bottom < innerHeight), "the buttons are out of sight");
  await audit(page, "ask-phone");
  await page.setViewportSize({ width: 1280, height: 820 });
  await page.focus(".ask");
  await page.keyboard.press("2");
  await page.waitForSelector(".choice:has(:checked):has-text('Engine 2')");
  await picture(page, "ask-first");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".ask.seen:has-text('Choose one or more.')");
  await page.keyboard.press("1");
  await page.keyboard.press("2");
  await page.waitForSelector(".choice:has(:checked) >> nth=1");
  await picture(page, "ask-second");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".answers div:has-text('Which database?') >> text=Engine 2");
  await page.waitForSelector(".answers div:has-text('Which pages?') >> text=Wish lists, Coupons");
  await hasFocus(page, "#prompt");
  await page.waitForSelector("text=That is noted.");
  await picture(page, "ask-answered");
}, { bypassCSP: true }); // axe is no part of the page: the policy would refuse it
