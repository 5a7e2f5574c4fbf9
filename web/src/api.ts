// SPDX-License-Identifier: Apache-2.0
// The HTTP API as docs/api.md has it: types of its rows, and requests.
import { parse_inert } from "./inert";

export type Phase =
  "starting" | "waiting" | "running" | "stalled" | "stopping" | "restarting" | "ended";
export type Outcome = "succeeded" | "failed" | "stopped";
export type AttemptEnd = "running" | "succeeded" | "failed" | "stopped" | "lost";
// "lost": it ran, and nobody saw its end.
export type RankEnd =
  "pending" | "running" | "exited" | "failed" | "stopped" | "lost" | "spawn_failed";
export type StreamName = "stdout" | "stderr";

// A value that the server does not know is null or missing.
type Known<T> = T | null | undefined;

export interface Waiting {
  text: string;
  have: number;
  min: number;
  max: number;
  hosts: string[];
  left_s: Known<number>;
}

export interface Trouble {
  time_us?: Known<number>;
  subject: string;
  message: string;
}

export interface Leftover {
  pid: number;
  command: string;
  ended: boolean;
  fate: string;
}

export interface Job {
  api: number;
  version: string;
  run_id: string;
  host: string;
  program: string;
  command: string[];
  log_dir: string;
  started_by: string;
  pid: number;
  live: boolean;
  hosting: boolean;
  phase: Phase;
  outcome: Known<Outcome>;
  exit_code: Known<number>;
  why: Known<string>;
  summary: string;
  stall?: Known<Stall>; // that of now
  restart_due_us?: Known<number>; // of a restart that is put off
  started_us: number;
  now_us: number;
  ended_us: Known<number>;
  attempt: number;
  restarts_used: number;
  max_restarts: number;
  world_size: number;
  local_world_size: number;
  min_nodes: number;
  max_nodes: number;
  master_addr: Known<string>;
  master_port: Known<number>;
  waiting: Known<Waiting>;
  stop: Known<{
    signal: Known<string>;
    sender: Known<string>;
    host: Known<string>;
    text: Known<string>;
  }>;
  troubles: Trouble[];
  leftovers: Leftover[];
}

export interface JobNode {
  id: string;
  node: number;
  host: string;
  address: Known<string>;
  pid: Known<number>;
  workers: number;
  first_rank: number;
  spare: boolean;
  here: boolean;
  joined_us: number;
  lost: Known<{ how: string; message: string }>;
}

export interface NodeSpan {
  id: string; // that of its JobNode
  node: number;
  host: string;
  first_rank: number;
  workers: number;
}

export interface VictimGroup {
  ranks: string;
  reason: string;
}

export interface Attempt {
  attempt: number;
  restart_count: number;
  world_size: number;
  node_count: number;
  started_us: number;
  ended_us: Known<number>;
  state: AttemptEnd;
  nodes: NodeSpan[];
  counts: Record<"pending" | "running" | "exited" | "failed" | "stopped" | "lost", number>;
  failure: Known<Failure>;
  other_failures: Failure[];
  victims: VictimGroup[];
  collectives?: Collective[]; // what its workers were doing when it was ended
  stalls?: Stall[]; // the oldest first
  saved?: Saved[];
}

// That the job makes no progress, or made none.
export interface Stall {
  attempt: number;
  kind: string;
  text: string;
  hint: string;
  suspects: string; // "0-2,5": who differs
  waiting: string;
  since_us: number;
  over: boolean;
  lasted_us: Known<number>;
  how: string; // how it ended
}

// Stacks and other evidence of running workers, in a folder of one host.
export interface Saved {
  host: string;
  why: string;
  folder: string;
  groups: string[]; // ranks whose stacks are alike
  trouble: string; // what could not be had
}

// Who keeps whom waiting in an operation of a communicator.
export interface Collective {
  kind: string;
  text: string;
  suspects: string; // "0-2,5"
  waiting: string;
  waited_s: number;
  communicator: string;
  operation: string;
  sequence: number;
  bytes: Known<number>;
  data_type: Known<string>;
}

export interface Rank {
  attempt: number;
  rank: number;
  local_rank: number;
  node: number;
  host: string;
  pid: Known<number>;
  state: RankEnd;
  exit_code: Known<number>;
  signal: Known<string>; // "SIGKILL"
  started_us: Known<number>;
  ended_us: Known<number>;
  stopped_for: Known<string>;
  stop_signal: Known<string>; // "SIGKILL"
  max_rss_bytes: Known<number>;
  stdout: boolean;
  stderr: boolean;
}

export interface Failure {
  attempt: number;
  rank: number; // -1: a whole node
  local_rank: number;
  node: number;
  host: string;
  pid: Known<number>;
  kind: string;
  signal: Known<string>; // "SIGKILL"
  exit_code: Known<number>;
  message: string;
  reason: Known<string>;
  hint: Known<string>;
  line?: Known<string>; // the one that shows it
  line_source?: Known<string>; // "stderr", "kernel log", ...
  excerpt: string[];
  excerpt_source: string;
  evidence?: string[]; // what else was found at its death
  note: Known<string>;
  victim?: boolean; // it shows what another's failure does to a rank
  blames?: Known<string>; // the ranks that it names
  can_heal: boolean;
  ran_us: Known<number>;
  time_us: Known<number>;
  stdout_log: Known<string>;
  stderr_log: Known<string>;
  stdout_url: Known<string>;
  stderr_url: Known<string>;
}

export interface Sample {
  rank: number;
  time_us: number;
  cpu?: Known<number>; // cores in use
  rss_bytes?: Known<number>;
  last_output_us?: Known<number>;
  gpu?: Known<number>; // 0..1
  gpu_memory_bytes?: Known<number>;
  step?: Known<number>;
  steps?: Known<number>;
  steps_per_s?: Known<number>;
  loss?: Known<number>;
  heartbeat_us?: Known<number>;
  values?: [string, Known<number>][]; // that it reports under names of its own
  alive_us?: Known<number>; // its last sign of life
  spins?: boolean; // since then it used a core and did nothing else
  process_state?: Known<string>; // "S", "D", ...
  wait_channel?: Known<string>;
  operation?: Known<{ call: string; state: "running" | "done" | "failed"; since_us: number }>;
}

// A line of events.jsonl (docs/events.md). What else it has depends on its name.
export interface JobEvent {
  seq: number;
  time: string;
  mono_us: number;
  event: string;
  attempt?: number;
  rank?: number;
  [key: string]: unknown;
}

// What the event stream sends.
export interface StateMessage {
  seq: number;
  job: Job;
  nodes: JobNode[];
  attempts: Attempt[];
  ranks: Rank[];
  events: JobEvent[];
}
export type ChangeMessage = Partial<StateMessage> & { seq: number };
export interface SamplesMessage {
  samples: Sample[];
}

// Of /status what no row has: who waits for keys of the store, and what is strange about the job.
export interface StoreStatus {
  waiters: number;
  longest_s: number;
  waiting_ranks: string;
  other_ranks: string;
  waits: {
    keys: string[];
    key_count: number;
    waiters: number;
    ranks: string;
    barrier?: boolean;
    longest_s: number;
  }[];
}
export interface Status {
  attention?: string[];
  collectives?: Collective[];
  store?: Known<StoreStatus>;
}

// [offset, number, time_us, size, ended, text, skipped]; skipped: bytes of the line before text.
export type PageLine = [number, number, number, number, boolean, string, number?];
export interface Page {
  attempt: number;
  rank: number;
  stream: StreamName;
  exists: boolean;
  growing: boolean;
  offset: number;
  end: number;
  size: number;
  total_lines: number;
  hole: Known<[number, number]>;
  lines: PageLine[];
}

// [rank, stream, offset, number, time_us, size, ended, text]
export type MergedLine = [number, StreamName, ...PageLine];
export interface Merged {
  lines: MergedLine[];
  at_begin: boolean; // nothing before them
  at_end: boolean; // nothing behind them yet
  untimed: number[]; // ranks with a log of which no times are known, which is left out
  unreachable: string[]; // hosts whose logs are left out
}

export interface SearchHit {
  attempt: number;
  rank: number;
  stream: StreamName;
  offset: number;
  number: number;
  time_us: number;
  size: number;
  ended: boolean;
  skipped?: number;
  text: string;
  matches: [number, number][];
  before: PageLine[];
  after: PageLine[];
}
export interface SearchMessage {
  hit?: SearchHit;
  progress?: { bytes: number; total_bytes: number; hits: number };
  done?: { hits: number; truncated: boolean; bytes: number; unreachable?: string[]; troubles?: string[] };
}

export type SeriesPoint = [number, Known<number>, Known<number>, Known<number>]; // time_us, step, steps, loss

export class ApiError extends Error {
  readonly status: number;
  readonly hint: string;
  constructor(status: number, message: string, hint = "") {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

// What stands behind an answer that is not a success.
async function error_of(response: Response): Promise<ApiError> {
  try {
    const body = (await response.json()) as { error?: { message?: string; hint?: string } };
    if (body.error?.message) {
      return new ApiError(response.status, body.error.message, body.error.hint);
    }
  } catch {
    // Not JSON: a proxy's page, say.
  }
  return new ApiError(response.status, `the server answered ${response.status}`);
}

// Parameters that are undefined or empty are left out.
export function api_url(
  path: string,
  params: Record<string, string | number | undefined> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export async function get_json<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(url, {
    signal: signal ?? null,
    headers: { Accept: "application/json" },
  });
  if (!response.ok) throw await error_of(response);
  return (await response.json()) as T;
}

// The same for rows that are shown: no string in them acts on what stands around it.
export async function get_rows<T>(url: string, signal?: AbortSignal): Promise<T> {
  const response = await fetch(url, {
    signal: signal ?? null,
    headers: { Accept: "application/json" },
  });
  if (!response.ok) throw await error_of(response);
  return parse_inert<T>(await response.text());
}

export async function post(url: string): Promise<void> {
  const response = await fetch(url, { method: "POST", headers: { Accept: "application/json" } });
  if (!response.ok) throw await error_of(response);
}

// Calls `on_row` for each line of JSON as it arrives. A line that is not JSON (cut off by a
// killed server) is passed over.
export async function read_json_lines<T>(
  url: string,
  on_row: (row: T) => void,
  signal?: AbortSignal,
  parse: (line: string) => T = JSON.parse,
): Promise<void> {
  const response = await fetch(url, { signal: signal ?? null });
  if (!response.ok) throw await error_of(response);
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  const take = (line: string) => {
    if (!line) return;
    let row: T;
    try {
      row = parse(line);
    } catch {
      return;
    }
    on_row(row);
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(take);
  }
  take(rest);
}
