// The prompt box, for what is elsewhere on the page.

export const promptBox = (): HTMLTextAreaElement | null => document.querySelector("#prompt");

/** Give the prompt box the focus, and type something at its cursor. */
export function typeIntoPrompt(text: string): void {
  const box = promptBox();
  box?.focus();
  if (!box || !text) return;
  box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
  box.dispatchEvent(new Event("input", { bubbles: true }));
}
