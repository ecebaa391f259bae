// How the page looks: its letters and its weight, words where there is room, one line for what only looks, dialogs, motion.
import assert from "node:assert/strict";
import { audit } from "./axe.mjs";
import { inBrowser, picture } from "./browser.mjs";
import { importSession, makeMessages, show } from "./made.mjs";

const MOST_BYTES = 220_000;

/** A step with one call. */
function step(index, tool, input, metadata = {}) {
  const [, answer] = makeMessages(2);
  const { info, parts } = answer;
  const id = (prefix) => `${prefix}_step${String(index).padStart(8, "0")}`;
  const time = { created: info.time.created + index, completed: info.time.created + index };
  const call = { id: id("prt"), messageID: id("msg"), sessionID: info.sessionID, type: "tool", tool, callID: id("call"), state: { status: "completed", input, output: "done", title: tool, metadata, time: { start: time.created, end: time.created } } };
  return { info: { ...info, id: id("msg"), time, finish: index === 9 ? "stop" : "tool-calls" }, parts: parts.length > 0 ? [call] : [] };
}

await inBrowser(async (open, { browser }) => {
  let bytes = 0;
  const page = await open({ url: "about:blank" });
  const network = await browser.newCDPSession(page);
  await network.send("Network.enable");
  network.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
  await page.goto(process.env.CODELOOP_LINK);
  await page.waitForSelector(".picker:has-text('coder')");
  await page.evaluate(() => document.fonts.ready);
  assert.equal(await page.evaluate(() => document.fonts.check("15px Geist") && [...document.fonts].some((font) => font.status === "loaded")), true);
  assert.ok(bytes > 0 && bytes < MOST_BYTES, `the first load has ${bytes} bytes`);
  console.log(`first load: ${bytes} bytes`);

  const [prompt] = makeMessages(2);
  const steps = [
    step(1, "read", { filePath: "/x/a.py" }),
    step(2, "read", { filePath: "/x/b.py" }),
    step(3, "grep", { pattern: "total" }, { matches: 3 }),
    step(4, "bash", { command: "make test" }, { exit: 2, output: "one\ntwo\nthree\nfour\n" }),
    step(9, "glob", { pattern: "*.py" }, { count: 1 }),
  ];
  await show(page, await importSession(page, "Looking around", [prompt, ...steps]));
  await page.waitForSelector(".explored");
  // Steps whose calls only look share one line; a single call keeps its own.
  assert.equal(await page.locator(".explored").count(), 1);
  assert.equal(await page.textContent(".explored .tool-words"), "2 files, 1 search");
  assert.equal(await page.textContent(".tail"), "two\nthree\nfour");
  await page.waitForSelector(".tool-note:has-text('exit code 2')");
  await page.waitForSelector(".tool-line:has-text('Found files')");

  const words = page.locator(".top .words");
  await page.setViewportSize({ width: 1200, height: 800 });
  assert.deepEqual(await words.evaluateAll((all) => all.map((each) => each.checkVisibility())), [true, true, true]);
  await page.setViewportSize({ width: 1024, height: 800 });
  assert.deepEqual(await words.evaluateAll((all) => all.map((each) => each.checkVisibility())), [false, false, false]);
  assert.match(await page.textContent(".group-path"), /\//);

  // Every dialog begins at the same line, with the focus on what it is for.
  const tops = new Set();
  for (const key of ["l", "m", "a", "s", ",", "g"]) {
    await page.keyboard.press("Control+x");
    await page.keyboard.press(key);
    await page.waitForSelector("dialog[open]");
    tops.add(await page.evaluate(() => document.querySelector("dialog").getBoundingClientRect().top));
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label") === "Close"), false, `the way out has the focus after ${key}`);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog[open]", { state: "detached" });
  }
  assert.equal(tops.size, 1, `dialogs begin at ${[...tops]}`);

  // Nothing moves for who wants no motion; for others, a dialog takes 120 ms to be there.
  const duration = () => page.evaluate(() => parseFloat(getComputedStyle(document.querySelector("dialog")).animationDuration));
  for (const [reducedMotion, seconds] of [["no-preference", 0.12], ["reduce", 0.00001]]) {
    await page.emulateMedia({ reducedMotion });
    await page.keyboard.press("Control+k");
    await page.waitForSelector("dialog[open]");
    assert.ok(Math.abs((await duration()) - seconds) < 1e-6, reducedMotion);
    await page.keyboard.press("Escape");
  }
  for (const width of [1440, 1024, 390, 360]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await audit(page, `looks-${width}-${colorScheme}`);
    }
  }
  await picture(page, "looks");
}, { bypassCSP: true }); // for axe
