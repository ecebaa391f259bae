// What is said to people who do not look: to screen readers, and in a notification while another page is in front.
import { signal } from "@preact/signals";
import { readKept, writeKept } from "./kept";
import { sessions } from "./store";

/** The latest sentence for screen readers. */
export const announcement = signal("");

/** Whether the user wants notifications; the browser is asked when they are turned on. */
export const wantsNotifications = signal(readKept("notifications") === "yes");

export async function toggleNotifications(): Promise<void> {
  const isOn = !wantsNotifications.value && "Notification" in window && (await Notification.requestPermission()) === "granted";
  wantsNotifications.value = isOn;
  writeKept("notifications", isOn ? "yes" : "");
}

/** Say what happened in a session. */
export function announce(text: string, sessionID: string): void {
  announcement.value = text;
  if (!document.hidden || !wantsNotifications.value || !("Notification" in window)) return;
  try {
    const shown = new Notification(text, { body: sessions.peek().get(sessionID)?.title ?? "", tag: sessionID, icon: "/web/icon.svg" });
    shown.onclick = () => window.focus();
  } catch {
    // Phones show notifications from a worker only; the page's title says it there.
  }
}
