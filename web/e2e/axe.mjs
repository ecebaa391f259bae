// What axe finds on a page, and whether the page is wider than its window: both must be nothing.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { picture } from "./browser.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Look at a page as it is: what axe finds, and whether it scrolls sideways. */
export async function audit(page, name) {
  await page.waitForTimeout(250);
  await picture(page, name);
  await page.evaluate((source) => window.axe ?? new Function(source)(), axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { rules: { region: { enabled: false } } }));
  assert.deepEqual(violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`), [], `axe on ${name}`);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${name} is ${overflow} px too wide`);
}
