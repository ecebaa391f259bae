// Which changed files were looked at, as they were then: a file that changes again is to be looked at again.
import { computed, signal } from "@preact/signals";
import { readKept, writeKept } from "./kept";
import { place } from "./store";

const scope = computed(() => `viewed.${place.value.sessionID || place.value.directory}`);
const changes = signal(0);

const marks = computed<Readonly<Record<string, string>>>(() => {
  void changes.value;
  try {
    return JSON.parse(readKept(scope.value) || "{}") as Record<string, string>;
  } catch {
    return {};
  }
});

/** A short name for a patch: other lines give another one. */
function nameOf(patch: string): string {
  let hash = 2_166_136_261;
  for (let at = 0; at < patch.length; at++) hash = Math.imul(hash ^ patch.charCodeAt(at), 16_777_619);
  return `${patch.length}.${(hash >>> 0).toString(36)}`;
}

export const isViewed = (file: string, patch: string): boolean => Object.hasOwn(marks.value, file) && marks.value[file] === nameOf(patch);

export function toggleViewed(file: string, patch: string): void {
  const next: Record<string, string> = { ...marks.value };
  if (isViewed(file, patch)) delete next[file];
  else next[file] = nameOf(patch);
  writeKept(scope.value, JSON.stringify(next));
  changes.value++;
}
