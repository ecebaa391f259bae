// Colours for code: a few languages at once, others when a block of one is met.
import { signal } from "@preact/signals";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const FIRST = { bash, css, diff, json, python, typescript, xml, yaml };
for (const [name, language] of Object.entries(FIRST)) hljs.registerLanguage(name, language);
hljs.registerAliases(["console", "shell"], { languageName: "bash" });
hljs.registerAliases(["jsonc", "json5"], { languageName: "json" });
hljs.registerAliases(["javascript", "js", "jsx", "mjs"], { languageName: "typescript" });

/** Longer code stays plain: colouring it would stop the page. */
const MOST = 40_000;

/** Counts how often languages were added; what was drawn without them is drawn again. */
export const languages = signal(0);

let isLoading = false;

const MORE = new Set(
  "c cpp c++ h hpp cs csharp go golang rs rust java kotlin kt php ruby rb swift sql toml ini lua perl pl r scala dockerfile makefile markdown md graphql nix elixir haskell hs powershell scss less".split(" "),
);

async function loadMore(): Promise<void> {
  if (isLoading) return;
  isLoading = true;
  const { more } = await import("./more_languages");
  for (const [name, language] of Object.entries(more)) hljs.registerLanguage(name, language);
  languages.value++;
}

/** Return code as HTML with classes, or null where there is no language for it (yet). The result is still to be sanitised. */
export function highlight(code: string, language: string): string | null {
  if (code.length > MOST || !language) return null;
  if (!hljs.getLanguage(language)) {
    if (MORE.has(language)) void loadMore();
    return null;
  }
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/** A piece of coloured code: text, or pieces with the class of what they are. */
export type Piece = string | { className: string; pieces: Piece[] };

interface Node {
  scope?: string;
  children: (Node | string)[];
}

/** Return code in pieces, for a page that needs no HTML of it; one piece where there is no language for it. */
export function colour(code: string, language: string): Piece[] {
  if (code.length > MOST || !language) return [code];
  if (!hljs.getLanguage(language)) {
    if (MORE.has(language)) void loadMore();
    return [code];
  }
  const { _emitter } = hljs.highlight(code, { language, ignoreIllegals: true }) as unknown as { _emitter: { rootNode: Node } };
  return toPieces(_emitter.rootNode);
}

const toPieces = ({ children }: Node): Piece[] => children.map((child) => (typeof child === "string" ? child : { className: classOf(child.scope ?? ""), pieces: toPieces(child) }));

/** The classes of a scope such as `title.function`, as the style names them. */
function classOf(scope: string): string {
  const [first, ...rest] = scope.split(".");
  return [`hljs-${first}`, ...rest.map((each, depth) => `${each}${"_".repeat(depth + 1)}`)].join(" ");
}

/** Return the name of a file's language, by its ending. */
export function languageOf(file: string): string {
  const name = file.slice(file.lastIndexOf("/") + 1).toLowerCase();
  if (name === "dockerfile" || name === "makefile") return name;
  const ending = name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : "";
  const known: Record<string, string> = { py: "python", pyi: "python", ts: "typescript", tsx: "typescript", html: "xml", svg: "xml", yml: "yaml", sh: "bash" };
  return known[ending] ?? ending;
}
