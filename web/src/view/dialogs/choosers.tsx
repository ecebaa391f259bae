// Dialogs that choose something from a list: a model, an agent, a session, a command, a prompt, a place in the text.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { currentAgent, currentEffort, effortsOf, shownModel, textOf } from "../../state/actions";
import { searchSessions } from "../../state/load";
import { go } from "../../state/route";
import { conversationOf, offers, place, sessions } from "../../state/store";
import { attempt, chosenAgent, chosenEffort, chosenModel } from "../../state/ui";
import { baseName, formatAge, formatCount } from "../../text/format";
import { get } from "../../wire/api";
import { target } from "../conversation";
import { ACTIONS, runAction, type Action, type ActionName } from "../keys";
import { Chooser, type Choice } from "./frame";

export function ModelDialog() {
  const now = shownModel();
  const choices = offers.value.providers.flatMap((provider) =>
    Object.values(provider.models).map((model): Choice => ({ id: `${provider.id}/${model.id}`, label: model.name, group: provider.name, hint: `${provider.name}${model.limit.context ? ` · ${formatCount(model.limit.context)}` : ""}`, isChosen: now?.providerID === provider.id && now.modelID === model.id })),
  );
  return <Chooser title="Switch model" choices={choices} onChoose={(id) => (chosenModel.value = id)} />;
}

export function AgentDialog() {
  const choices = offers.value.agents.filter((agent) => agent.mode !== "subagent" && !agent.hidden).map((agent): Choice => ({ id: agent.name, label: agent.name, hint: agent.description ?? "", isChosen: agent.name === currentAgent() }));
  return <Chooser title="Switch agent" choices={choices} onChoose={(id) => (chosenAgent.value = id)} />;
}

export function EffortDialog() {
  const choices = ["", ...effortsOf(shownModel())].map((id): Choice => ({ id, label: id || "default", hint: id ? "" : "what the model does by itself", isChosen: id === currentEffort() }));
  return <Chooser title="How much the model thinks" choices={choices} onChoose={(id) => (chosenEffort.value = id)} />;
}

export function SessionDialog() {
  const roots = [...sessions.value.values()].filter((session) => !session.parentID).sort((a, b) => b.time.updated - a.time.updated);
  const choices = roots.map((session): Choice => ({ id: session.id, label: session.title, hint: `${baseName(session.directory)} · ${formatAge(session.time.updated)}`, isChosen: session.id === place.value.sessionID }));
  const search = useSearch(searchSessions);
  return <Chooser title="Switch session" choices={choices} {...search} onChoose={(id) => go({ sessionID: id, directory: sessions.value.get(id)?.directory ?? place.value.directory })} />;
}

export function CommandDialog() {
  const choices = Object.entries(ACTIONS).filter(([name]) => name !== "palette").map(([name, action]: [string, Action]): Choice => ({ id: name, label: action.title, hint: [action.slash && `/${action.slash}`, action.key && `Ctrl+X ${action.key}`].filter(Boolean).join("   ") }));
  return <Chooser title="All commands" choices={choices} onChoose={(id) => setTimeout(() => runAction(id as ActionName))} />;
}

/** Has the server search for what is typed once that is at rest. */
function useSearch(work: (query: string) => Promise<void>): { onQuery: (query: string) => void; isSearching: boolean } {
  const wanted = useSignal("");
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const search = async (query: string): Promise<void> => {
    await attempt(() => work(query));
    if (wanted.value === query) wanted.value = "";
  };
  const onQuery = (typed: string): void => {
    clearTimeout(timer.current);
    const query = typed.trim();
    wanted.value = query.length > 1 ? query : "";
    if (wanted.value) timer.current = setTimeout(() => void search(query), 150);
  };
  return { onQuery, isSearching: wanted.value !== "" };
}

/** Ask the server where a text stands in the session on the screen. */
const findText = async (query: string): Promise<readonly Match[]> => (await get<{ found: Match[] }>(`/session/${place.value.sessionID}/find`, place.value.directory, { query })).found;

export function TimelineDialog() {
  const found = useSignal<readonly Match[]>([]);
  const search = useSearch(async (query) => void (found.value = (await findText(query)).filter((match) => match.kind === "prompt")));
  const prompts = conversationOf(place.value.sessionID).messages.value.filter((view) => view.info.value.role === "user").reverse();
  const choices = prompts.map((view): Choice => ({ id: view.info.value.id, label: textOf(view.parts.value.map((part) => part.value)).slice(0, 200), hint: formatAge(view.info.value.time.created) }));
  const known = new Set(choices.map((choice) => choice.id));
  const older = found.value.filter((match) => !known.has(match.messageID) && known.add(match.messageID)).map((match): Choice => ({ id: match.messageID, label: match.text, hint: formatAge(match.created) }));
  return <Chooser title="Go to a prompt" choices={[...choices, ...older.reverse()]} {...search} onChoose={(id) => (target.value = id)} />;
}

interface Match {
  messageID: string;
  partID: string;
  ordinal: number;
  kind: string;
  created: number;
  text: string;
}

/** Finds text in everything that a session holds, output of tools included: the server looks. */
export function FindDialog() {
  const found = useSignal<readonly Match[]>([]);
  const asked = useRef(0);
  const search = useSearch(async (query) => {
    const turn = ++asked.current;
    const matches = await findText(query);
    if (turn === asked.current) found.value = matches;
  });
  const choices = found.value.map((match): Choice => ({ id: `${match.messageID} ${match.partID} ${match.ordinal}`, label: match.text, hint: match.kind }));
  return <Chooser title="Find in the conversation" choices={choices} {...search} isFound onChoose={(id) => (target.value = id.split(" ")[0]!)} />;
}
