// Markdown as HTML that can do nothing. Raw HTML in it is shown as text; what is made here is sanitised all the same.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import remend from "remend";
import { showHidden } from "./format";
import { highlight } from "./highlight";

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text: string): string => text.replace(/[&<>"']/g, (sign) => ESCAPES[sign]!);
const ADDRESS = /^(?:https?:|mailto:)/i;

const marked = new Marked({
  gfm: true,
  renderer: {
    html: ({ text }) => escape(text),
    code: ({ text, lang }) => {
      const language = (lang ?? "").trim().split(/[\s,{]/)[0]!.toLowerCase();
      const label = language ? `<span class="code-language">${escape(language)}</span>` : "";
      const code = highlight(text, language) ?? escape(text);
      return `<div class="code"><div class="code-bar">${label}<button type="button" class="code-copy">Copy</button></div><pre tabindex="0"><code>${code}</code></pre></div>`;
    },
    // A picture from elsewhere would tell its server who reads this, so it is a link.
    image: ({ href, text }) => (ADDRESS.test(href) ? `<a href="${escape(href)}">${escape(text || href)}</a>` : escape(text || href)),
    checkbox: ({ checked }) => `<span class="task">${checked ? "☑" : "☐"}</span> `,
    table(token: Tokens.Table) {
      const row = (cells: Tokens.TableCell[], tag: "th" | "td"): string => `<tr>${cells.map((cell) => `<${tag}${cell.align ? ` class="${cell.align}"` : ""}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("")}</tr>`;
      return `<div class="table" tabindex="0"><table><thead>${row(token.header, "th")}</thead><tbody>${token.rows.map((cells) => row(cells, "td")).join("")}</tbody></table></div>`;
    },
  },
});

const purifier = DOMPurify(window);
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

purifier.addHook("uponSanitizeElement", (node) => {
  if (node.nodeType === Node.TEXT_NODE) node.textContent = showHidden(node.textContent ?? "");
});

const ALLOWED = {
  ALLOWED_TAGS: "a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul".split(" "),
  ALLOWED_ATTR: ["class", "href", "start", "tabindex", "title", "type"],
  ALLOWED_URI_REGEXP: ADDRESS,
  ADD_URI_SAFE_ATTR: ["start", "tabindex", "type"],
  ALLOW_DATA_ATTR: false,
  RETURN_TRUSTED_TYPE: true,
} as const;

/** Make HTML safe to put into the page, as the browser's own type for that where it has one. */
export const sanitise = (html: string): string => purifier.sanitize(html, { ...ALLOWED, ALLOWED_TAGS: [...ALLOWED.ALLOWED_TAGS], ALLOWED_ATTR: [...ALLOWED.ALLOWED_ATTR], ADD_URI_SAFE_ATTR: [...ALLOWED.ADD_URI_SAFE_ATTR] }) as unknown as string;

/** A block of a text, such as a paragraph; `raw` tells whether it has changed. */
export interface Block {
  raw: string;
  token: Token;
}

/** Splits a text that grows into its blocks. Only what may still change is read again: the last block. */
export class BlockSplitter {
  private settled: Block[] = [];
  private before = "";

  /** `isLive`: the text is still being written, so what is open at its end is closed. Else it is read as a whole. */
  split(text: string, isLive: boolean): Block[] {
    if (!isLive) return toBlocks(marked.lexer(text));
    if (!text.startsWith(this.before)) {
      this.settled = [];
      this.before = "";
    }
    const rest = text.slice(this.before.length);
    const known = this.settled;
    const fresh = toBlocks(marked.lexer(rest));
    const last = fresh.at(-1);
    const end = last && fresh.length > 1 ? rest.lastIndexOf(last.raw) : -1; // not there where line ends were written otherwise
    if (end > 0) {
      this.settled = [...known, ...fresh.slice(0, -1)];
      this.before += rest.slice(0, end);
    }
    return last ? [...known, ...fresh.slice(0, -1), ...toBlocks(marked.lexer(remend(last.raw)))] : [...known];
  }
}

const toBlocks = (tokens: Token[]): Block[] => tokens.filter((token) => token.type !== "space").map((token) => ({ raw: token.raw, token }));

/** Return the safe HTML of one block. */
export const renderBlock = (block: Block): string => sanitise(marked.parser([block.token]));

/** Texts that were drawn lately: scrolling back to one costs nothing. */
const drawn = new Map<string, string>();
const MOST_DRAWN = 200;

/** Return the safe HTML of a text that is complete. `key` tells with which languages it was drawn. */
export function renderText(text: string, key: number): string {
  const name = `${key} ${text}`;
  const known = drawn.get(name);
  if (known !== undefined) return known;
  const html = sanitise(marked.parser(marked.lexer(text)));
  drawn.set(name, html);
  if (drawn.size > MOST_DRAWN) drawn.delete(drawn.keys().next().value!);
  return html;
}

const SAMPLES = ["a **b** _c_ `d` [e](https://f) ~~g~~", "# a\n\nb\n===", "- a\n- b\n\n1. c", "> a", "```python\nx = 1\n```", "| a | b |\n|---|---|\n| c | d |", "<b>a</b> \\* https://c.d"];

/** Draw a text of each kind while nothing else is to be done: the browser makes its regular expressions ready then. */
export function warmUp(): void {
  const wait = (work: () => void): void => void ("requestIdleCallback" in window ? requestIdleCallback(work, { timeout: 2_000 }) : setTimeout(work, 200));
  const next = (index: number): void => {
    if (index === SAMPLES.length) return;
    sanitise(marked.parser(marked.lexer(SAMPLES[index]!)));
    wait(() => next(index + 1));
  };
  wait(() => next(0));
}
