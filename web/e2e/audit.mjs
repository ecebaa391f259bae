// Every view at every size, by day and by night: axe finds nothing, and nothing is wider than a phone of 360 px.
import { audit } from "./axe.mjs";
import { inBrowser, prompt } from "./browser.mjs";

await inBrowser(async (open) => {
  const page = await open();
  await page.waitForSelector("#prompt");
  await audit(page, "audit-start");
  await prompt(page, "mend the total");
  await page.waitForSelector(".ask");
  const address = page.url();
  for (const size of ["desktop", "phone"]) {
    for (const scheme of ["light", "dark"]) {
      const view = await open({ size, scheme, url: address });
      await view.waitForSelector(".ask");
      await audit(view, `audit-ask-${size}-${scheme}`);
      await view.close();
    }
  }
  await page.click("text=Allow once");
  await page.waitForSelector(".closing");
  for (const size of ["desktop", "phone"]) {
    for (const scheme of ["light", "dark"]) {
      const view = await open({ size, scheme, url: address });
      await view.waitForSelector(".closing");
      await audit(view, `audit-answer-${size}-${scheme}`);
      await view.click("[aria-label='Review changes']");
      await view.waitForSelector(".review .row.add");
      await audit(view, `audit-review-${size}-${scheme}`);
      await view.click(".review >> text=Comment");
      await audit(view, `audit-comment-${size}-${scheme}`);
      await view.fill(".comment textarea", "shorter names, please");
      await view.keyboard.press("Control+Enter");
      await view.click(".thread >> text=Reply");
      await audit(view, `audit-thread-${size}-${scheme}`);
      await view.click(".thread >> text=Remove");
      await view.click("[aria-label='Close the review']");
      if (size === "phone") {
        await view.click("button[aria-label='Sessions']");
        await view.waitForSelector(".sidebar.open");
        await audit(view, `audit-sidebar-${size}-${scheme}`);
        await view.keyboard.press("Escape");
      }
      for (const [key, name] of [["s", "context"], ["m", "models"], ["l", "sessions"], ["u", "undo"]]) {
        await view.keyboard.press("Control+x");
        await view.keyboard.press(key);
        await view.waitForSelector("dialog");
        await audit(view, `audit-${name}-${size}-${scheme}`);
        await view.keyboard.press("Escape");
      }
      await view.close();
    }
  }
}, { bypassCSP: true }); // axe is no part of the page: the policy would refuse it
