// A session saved as one page: it opens from the disk, shows what the session shows, and its policy lets nothing else in.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { audit } from "./axe.mjs";
import { inBrowser, picture, prompt } from "./browser.mjs";

const KEY = `sk-proj-${"Abc123".repeat(7)}`;

await inBrowser(async (open, { allow }) => {
  const page = await open();
  await page.waitForSelector("#prompt");
  await prompt(page, "mend the total");
  await page.waitForSelector(".ask");
  await page.click("text=Allow once");
  await page.waitForSelector(".closing");
  await prompt(page, `say one word, with ${KEY}`);
  await page.waitForSelector("text=Certainly.");
  await page.click("[aria-label='Share as a file']");
  await page.waitForSelector("dialog >> text=1 secret is hidden");
  await picture(page, "share-dialog");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save the page")]);
  const file = await download.path();
  const text = await readFile(file, "utf8");
  assert.ok(!text.includes(KEY));
  assert.match(download.suggestedFilename(), /\.html$/);

  // Exported it is whole, as `codeloop import` reads it.
  await page.fill("#prompt", "/export");
  const [exported] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("Enter")]);
  const { info, messages } = JSON.parse(await readFile(await exported.path(), "utf8"));
  assert.match(exported.suggestedFilename(), /\.json$/);
  assert.equal(info.title, "Mending the total");
  assert.ok(messages.length > 3 && JSON.stringify(messages).includes(KEY));

  const bare = `${file}.bare.html`; // axe is no part of the page: it looks at a copy without the policy
  await writeFile(bare, text.replace(/<meta http-equiv[^>]*>/, ""));
  for (const size of ["desktop", "phone"]) {
    for (const scheme of ["light", "dark"]) {
      const view = await open({ size, scheme, url: `file://${bare}` });
      await view.waitForSelector(".closing");
      await audit(view, `share-${size}-${scheme}`);
      await view.close();
    }
  }

  const shared = await open({ url: "about:blank" });
  const requests = [];
  shared.on("request", (request) => requests.push(request.url()));
  await writeFile(`${file}.html`, text);
  await shared.goto(`file://${file}.html`);
  await shared.waitForSelector(".answer strong >> text=one count");
  assert.equal(await shared.locator(".tool.completed").count(), 4);
  assert.match(await shared.textContent(".shared"), /say one word, with \[hidden\]/);
  assert.equal(await shared.locator("[aria-label='Undo back to here']").count(), 0);
  await shared.click(".tool-line:has-text('python3')");
  await shared.waitForSelector(".output:has-text('OK')");
  assert.deepEqual(requests, [`file://${file}.html`]);
  allow(/Content Security Policy|Refused to|TrustedScript|Trusted Type|requires 'Trusted/i);
  let hits = 0;
  const elsewhere = createServer((_, response) => {
    hits++;
    response.setHeader("access-control-allow-origin", "*");
    response.end();
  });
  await new Promise((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${elsewhere.address().port}/`;
  const done = await shared.evaluate(async (url) => {
    const script = document.createElement("script");
    try {
      script.textContent = "window.ran = 1";
    } catch {
      // Trusted Types refuse it already.
    }
    document.body.append(script);
    const image = new Image();
    image.src = url;
    const answer = await fetch(url).then(() => "asked", () => "refused");
    await new Promise((resolve) => setTimeout(resolve, 300));
    return { ran: window.ran ?? null, answer };
  }, address);
  elsewhere.close();
  assert.deepEqual(done, { ran: null, answer: "refused" });
  assert.equal(hits, 0, "the policy stops requests before they are made");
});
