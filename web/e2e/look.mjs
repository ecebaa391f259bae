import { inBrowser, picture, prompt, link } from "./browser.mjs";
await inBrowser(async (open) => {
  const page = await open();
  await page.waitForSelector("#prompt");
  await page.waitForTimeout(800);
  await picture(page, "start");
  await prompt(page, "mend the total");
  await page.waitForSelector(".ask", { timeout: 15000 });
  await page.waitForTimeout(500);
  await picture(page, "ask");
  await page.keyboard.press("Escape");
  await page.click("text=Allow once");
  await page.waitForSelector(".closing", { timeout: 15000 });
  await page.waitForTimeout(500);
  await picture(page, "done");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "done-dark");
});
