// The shapes of the server's contract that the page reads; GET /doc has all of them.

export interface Tokens {
  input: number;
  output: number;
  reasoning: number;
  cache: { read: number; write: number };
}

export interface ModelRef {
  providerID: string;
  modelID: string;
}

export interface Session {
  id: string;
  projectID: string;
  directory: string;
  parentID?: string;
  title: string;
  agent?: string;
  model?: { id: string; providerID: string; variant?: string };
  cost?: number;
  tokens?: Tokens;
  summary?: { additions: number; deletions: number; files: number };
  metadata?: Record<string, unknown>;
  time: { created: number; updated: number; archived?: number };
  revert?: { messageID: string; partID?: string; diff?: string };
}

export interface Project {
  id: string;
  worktree: string;
  name?: string;
}

export interface MessageError {
  name: string;
  data: { message?: string };
}

/** What a turn did to the project, as the program itself found it. */
export interface TurnFacts {
  files: number;
  additions: number;
  deletions: number;
  checks: "passed" | "failed" | "unproven" | "not run" | "none";
  git?: string[];
  lostFiles?: string[];
  lostCount?: number;
  unrecorded?: string[];
  falseClaims?: string[];
  openTodos?: number;
}

export interface Message {
  id: string;
  sessionID: string;
  role: "user" | "assistant";
  time: { created: number; completed?: number };
  agent?: string;
  model?: ModelRef;
  parentID?: string;
  providerID?: string;
  modelID?: string;
  mode?: string;
  cost?: number;
  tokens?: Tokens;
  finish?: string;
  facts?: TurnFacts;
  summary?: true | { diffs?: FileDiff[] };
  error?: MessageError;
}

export interface ToolState {
  status: "pending" | "running" | "completed" | "error";
  input: Record<string, unknown>;
  title?: string;
  output?: string;
  error?: string;
  metadata?: Record<string, unknown>;
  time?: { start: number; end?: number };
  attachments?: Part[];
}

export interface Part {
  id: string;
  sessionID: string;
  messageID: string;
  type: string;
  text?: string;
  synthetic?: boolean;
  ignored?: boolean;
  time?: { start: number; end?: number };
  tool?: string;
  callID?: string;
  state?: ToolState;
  mime?: string;
  url?: string;
  filename?: string;
  files?: string[];
  name?: string;
  description?: string;
  agent?: string;
  auto?: boolean;
}

export interface MessageWithParts {
  info: Message;
  parts: Part[];
}

/** A session with those of its subagents, the session first, without secrets; `hidden`: how many there were. */
export interface ShareableSession {
  sessions: { info: Session; messages: MessageWithParts[] }[];
  hidden: number;
}

export interface FileDiff {
  file?: string;
  patch?: string;
  additions: number;
  deletions: number;
  status?: string;
}

export interface Todo {
  content: string;
  status: "pending" | "in_progress" | "completed" | "cancelled";
  priority: string;
}

export type Status = { type: "idle" } | { type: "busy" } | { type: "retry"; attempt: number; message: string; next: number };

export interface PermissionRequest {
  id: string;
  sessionID: string;
  permission: string;
  patterns: string[];
  metadata: Record<string, unknown>;
  always: string[];
  tool?: { messageID: string; callID: string };
}

export interface Question {
  question: string;
  header: string;
  options: { label: string; description: string }[];
  multiple?: boolean;
  custom?: boolean;
  /** What the question is about, in Markdown. */
  document?: { path: string; text: string };
}

export interface QuestionRequest {
  id: string;
  sessionID: string;
  questions: Question[];
  tool?: { messageID: string; callID: string };
}

export interface Agent {
  name: string;
  description?: string;
  mode: "primary" | "subagent" | "all";
  hidden?: boolean;
  model?: ModelRef;
}

export interface Command {
  name: string;
  description?: string;
  source?: string;
}

export interface Provider {
  id: string;
  name: string;
  models: Record<string, { id: string; name: string; limit: { context: number; output: number }; variants?: Record<string, unknown> }>;
}

export interface FileOutcome {
  restored: string[];
  unchanged: string[];
  conflicts: { path: string; reason: string }[];
}

export interface Pty {
  id: string;
  title: string;
  cwd: string;
  status: "running" | "exited";
}

/** Something that runs beside a turn: a background command, a subagent's session, or a call that takes long. */
export interface Job {
  id: string;
  kind: "command" | "subagent" | "call";
  sessionID: string;
  title: string;
  started: number;
  lastLine?: string;
  addresses?: string[];
  isOverdue?: boolean;
}

export interface ContextReport {
  model: string;
  window: number;
  used: number;
  parts: { group: string; name: string; tokens: number }[];
}

/** An event of the stream, with the directory that it is about ("" for the server's own). */
export interface WireEvent {
  directory: string;
  type: string;
  properties: Record<string, unknown>;
}
