// Dialogs that tell something: the keys, what fills the context, and how another device signs in.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { renderSVG } from "uqr";
import { place } from "../../state/store";
import { copy, fail } from "../../state/ui";
import { formatCost, formatCount } from "../../text/format";
import { get, post } from "../../wire/api";
import type { ContextReport } from "../../wire/types";
import { ACTIONS, type Action } from "../keys";
import { Frame } from "./frame";

const KEYS: [string, string][] = [
  ["Enter", "Send"],
  ["Shift+Enter", "New line"],
  ["Escape twice", "Stop the turn"],
  ["Ctrl+K", "All commands"],
  ["Ctrl+F", "Find in the conversation"],
  ["/", "To the prompt box; in it: commands"],
  ["@", "In the prompt: files and subagents"],
  ["!", "In the prompt: run a shell line yourself"],
  ["y  s  a  n", "Allow once, for this session, always, deny, when a permission is asked"],
  ["?", "This page"],
];

/** Every key, with what it does. */
export function KeyList() {
  const led = Object.values(ACTIONS).filter((action: Action) => action.key) as Action[];
  return (
    <>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        {led.map((action) => (
          <div key={action.key}>
            <dt>
              <kbd>Ctrl+X</kbd> <kbd>{action.key === "ArrowUp" ? "↑" : action.key}</kbd>
            </dt>
            <dd>{action.title}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet">
        <a href="/web/licences.txt">Licences of the code and the letters in this page</a>
      </p>
    </>
  );
}

export const HelpDialog = () => (
  <Frame title="Keys" size="wide">
    <KeyList />
  </Frame>
);

interface Report {
  context: ContextReport;
  cost: { cost: number };
  mcp: Record<string, { status: string }>;
  lsp: { name: string; status: string }[];
}

async function readReport(): Promise<Report> {
  const { sessionID, directory } = place.value;
  const [context, cost, mcp, lsp] = await Promise.all([
    get<ContextReport>(`/session/${sessionID}/context`, directory),
    get<{ cost: number }>(`/session/${sessionID}/cost`, directory),
    get<Report["mcp"]>("/mcp", directory),
    get<Report["lsp"]>("/lsp", directory),
  ]);
  return { context, cost, mcp, lsp };
}

export function ContextDialog() {
  const report = useSignal<Report | null>(null);
  useEffect(() => {
    if (place.value.sessionID) readReport().then((found) => (report.value = found), fail);
  }, []);
  const found = report.value;
  return (
    <Frame title="Context and status" size="wide">
      {!place.value.sessionID && <p class="quiet">There is nothing to tell before the first prompt.</p>}
      {found && (
        <>
          <p>
            <strong>{formatCount(found.context.used)}</strong> of {found.context.window ? formatCount(found.context.window) : "?"} tokens · {found.context.model} · {formatCost(found.cost.cost)} in all
          </p>
          <ContextBars report={found.context} />
          <Servers title="MCP servers" rows={Object.entries(found.mcp).map(([name, { status }]) => [name, status])} />
          <Servers title="Language servers" rows={found.lsp.map(({ name, status }) => [name, status])} />
        </>
      )}
    </Frame>
  );
}

function ContextBars({ report }: { report: ContextReport }) {
  const groups = new Map<string, number>();
  for (const part of report.parts) groups.set(part.group, (groups.get(part.group) ?? 0) + part.tokens);
  const most = Math.max(1, ...groups.values());
  return (
    <dl class="bars">
      {[...groups].map(([group, tokens]) => (
        <div key={group}>
          <dt>{group}</dt>
          <dd>
            <meter max={most} value={tokens} aria-label={group} /> {formatCount(tokens)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Servers({ title, rows }: { title: string; rows: [string, string][] }) {
  if (rows.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="files">
        {rows.map(([name, status]) => (
          <li key={name}>
            <code>{name}</code> {status}
          </li>
        ))}
      </ul>
    </>
  );
}

/** A picture of an address that a phone's camera reads. */
function QrCode({ text }: { text: string }) {
  const source = `data:image/svg+xml;base64,${btoa(renderSVG(text, { border: 2 }))}`;
  return <img class="qr" src={source} alt={`QR code of ${text.split("#")[0]}`} />;
}

export function PairDialog() {
  const urls = useSignal<readonly string[] | null>(null);
  useEffect(() => {
    post<{ urls: string[] }>("/web/link", {}).then((answer) => (urls.value = answer.urls), fail);
  }, []);
  const url = urls.value?.[0];
  return (
    <Frame title="Use on another device">
      {urls.value && !url && (
        <>
          <p>This server is reached from this machine only. To use it from your phone, start it for your network, with a password of your own:</p>
          <pre class="command" tabindex={0}>CODELOOP_SERVER_PASSWORD=… codeloop web --hostname 0.0.0.0</pre>
        </>
      )}
      {url && (
        <>
          <p>Scan this with a device in the same network. The link is good once, for ten minutes.</p>
          <QrCode text={url} />
          <div class="dialog-actions">
            <button type="button" class="button" onClick={() => void copy(url)}>
              Copy the link
            </button>
          </div>
        </>
      )}
    </Frame>
  );
}
