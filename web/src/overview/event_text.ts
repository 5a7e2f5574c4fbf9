// SPDX-License-Identifier: Apache-2.0
// An event in words (docs/events.md has their keys), and which filter it falls under.
import type { JobEvent } from "../api";
import { plural, short_ranks_text, signal_text, span_text } from "../format";

export const kGroups = ["failures", "attempts", "nodes", "signals", "trouble", "workers"] as const;
export type Group = (typeof kGroups)[number];

const kGroupOf: Record<string, Group> = {
  job_started: "attempts",
  attempt_started: "attempts",
  restart_scheduled: "attempts",
  restart_denied: "attempts",
  job_ended: "attempts",
  failure_found: "failures",
  victims_found: "failures",
  collectives_found: "failures",
  stall_found: "failures",
  stall_over: "failures",
  evidence_saved: "failures",
  spawn_failed: "failures",
  node_joined: "nodes",
  node_lost: "nodes",
  nodes_awaited: "nodes",
  signal_received: "signals",
  stop_ordered: "signals",
  restart_requested: "signals",
  trouble: "trouble",
  leftover_found: "trouble",
  worker_spawned: "workers",
  worker_exited: "workers",
  first_output: "workers",
  signal_sent: "workers",
};

// An event of a later version is shown with the job's own.
export function group_of(event: JobEvent): Group {
  return kGroupOf[event.event] ?? "attempts";
}

const text = (value: unknown): string =>
  value === undefined || value === null ? "" : String(value);
const number = (value: unknown): number => (typeof value === "number" ? value : Number(value) || 0);

function ending(event: JobEvent): string {
  return number(event["signal"])
    ? `killed by ${signal_text(number(event["signal"]))}`
    : `exited with ${text(event["exit_code"])}`;
}

function target(event: JobEvent): string {
  const rank = number(event.rank);
  return rank >= 0 ? `rank ${rank}` : `process ${text(event["pid"])}`;
}

const kReasons: Record<string, string> = {
  failure: "another worker failed",
  restart: "a restart",
  signal: "muster was told to stop",
  finished: "every worker is done",
  guard_lost: "muster's other process was killed",
  membership: "the nodes changed",
  coordinator_lost: "this node is cut off",
};

const kSentences: Record<string, (event: JobEvent) => string> = {
  job_started: (e) => `muster started ${text(e["program"])} on ${text(e["host"])}`,
  attempt_started: (e) =>
    `attempt ${text(e.attempt)} began: ${plural(number(e["world_size"]), "worker")} on ${plural(number(e["node_count"]), "node")}`,
  worker_spawned: (e) => `rank ${text(e.rank)} started${e["pid"] ? `, pid ${text(e["pid"])}` : ""}`,
  spawn_failed: (e) => `rank ${text(e.rank)} could not be started: ${text(e["message"])}`,
  first_output: (e) => `rank ${text(e.rank)} wrote its first to ${text(e["stream"])}`,
  worker_exited: (e) => `rank ${text(e.rank)} ${ending(e)}`,
  signal_sent: (e) => {
    const reason = kReasons[text(e["reason"])];
    return `${signal_text(number(e["signal"]))} sent to ${target(e)}${e["to_group"] ? " and its group" : ""}${reason ? `: ${reason}` : ""}`;
  },
  signal_received: (e) => {
    const on = e["host"] ? ` on ${text(e["host"])}` : "";
    const from = e["sender_pid"] ? ` from pid ${text(e["sender_pid"])} (${text(e["sender"])})` : "";
    return `muster got ${signal_text(number(e["signal"]))}${on}${from}${e["forwarded"] ? ", passed on to the workers" : ""}`;
  },
  restart_requested: (e) =>
    `a restart was asked for${e["who"] ? ` by ${text(e["who"])}` : ""}${e["host"] ? ` on ${text(e["host"])}` : ""}`,
  stop_ordered: (e) => `workers ordered to stop: ${text(e["why"])}`,
  failure_found: (e) =>
    `${number(e.rank) < 0 ? `node ${text(e["host"])}` : `rank ${text(e.rank)} on ${text(e["host"])}`} failed: ${text(e["message"])}${e["victim"] === true ? " (as another's victim)" : ""}`,
  victims_found: (e) => {
    const groups = Array.isArray(e["groups"])
      ? (e["groups"] as { ranks?: unknown; reason?: unknown }[])
      : [];
    return `fell only with it: ${groups.map((group) => `${text(group.ranks)} (${text(group.reason)})`).join("; ")}`;
  },
  collectives_found: (e) => {
    const found = Array.isArray(e["found"]) ? (e["found"] as { text?: unknown }[]) : [];
    return found.map((one) => text(one.text)).join("; ");
  },
  stall_found: (e) => `no progress: ${text(e["text"])}`,
  stall_over: (e) => `the job goes on: ${text(e["how"])}`,
  evidence_saved: (e) =>
    `evidence saved on ${text(e["host"])}: ${text(e["folder"])}${e["trouble"] ? `; ${text(e["trouble"])}` : ""}`,
  restart_denied: (e) => `no other attempt follows: ${text(e["reason"])}`,
  restart_scheduled: (e) =>
    `attempt ${text(e["next_attempt"])} follows${e["charged"] === false ? ", not charged to the restarts" : `, restart ${text(e["used"])} of ${text(e["max"])}`}${number(e["delay_ms"]) > 0 ? `, put off for ${span_text(number(e["delay_ms"]) / 1_000)}` : ""}`,
  leftover_found: (e) =>
    `process ${text(e["pid"])} outlived its worker: ${text(e["command"])}; ${e["ended"] === false ? "it is still there" : text(e["fate"])}`,
  node_joined: (e) =>
    `node ${text(e["host"])} came with ${plural(number(e["workers"]), "worker")}${e["spare"] ? " as a spare" : ""}`,
  node_lost: (e) =>
    `node ${text(e["host"])} ${e["how"] === "left" ? "left" : "was lost"}${e["message"] ? `: ${text(e["message"])}` : ""}`,
  nodes_awaited: (e) => text(e["text"]),
  trouble: (e) => `${text(e["subject"])}: ${text(e["message"])}`,
  job_ended: (e) =>
    `the job ${e["outcome"] === "failed" ? "failed" : e["outcome"] === "stopped" ? "was stopped" : "succeeded"}, exit code ${text(e["exit_code"])}${e["why"] ? `: ${text(e["why"])}` : ""}`,
};

export function event_text(event: JobEvent): string {
  return kSentences[event.event]?.(event) ?? event.event.replaceAll("_", " ");
}

// Events one after the other that say the same of several ranks or nodes are shown as one.
export interface EventRow {
  first: JobEvent; // in the order of time
  last: JobEvent;
  count: number;
  text: string;
}

// What has to be alike: null is never folded.
function likeness(event: JobEvent): string | null {
  switch (event.event) {
    case "worker_spawned":
      return `spawned ${event.attempt}`;
    case "first_output":
      return `output ${event.attempt} ${text(event["stream"])}`;
    case "worker_exited":
      return `exited ${event.attempt} ${ending(event)}`;
    case "signal_sent":
      return number(event.rank) < 0
        ? null
        : `signal ${event.attempt} ${text(event["signal"])} ${text(event["to_group"])} ${text(event["reason"])}`;
    case "node_joined":
      return `joined ${text(event["workers"])} ${text(event["spare"])}`;
    case "nodes_awaited":
      return "awaited";
    default:
      return null;
  }
}

const kHostsNamed = 4;
const kRanksLength = 60;

function folded_text(events: readonly JobEvent[]): string {
  const last = events.at(-1);
  if (!last) return "";
  if (events.length === 1 || last.event === "nodes_awaited") return event_text(last);
  if (last.event === "node_joined") {
    const hosts = events.slice(0, kHostsNamed).map((event) => text(event["host"]));
    return `${events.length} nodes came with ${plural(number(last["workers"]), "worker")} each: ${hosts.join(", ")}${events.length > kHostsNamed ? ", …" : ""}`;
  }
  // The sentence of one of them, with all ranks in the place of its own.
  const ranks = `ranks ${short_ranks_text(
    events.map((event) => number(event.rank)),
    kRanksLength,
  )}`;
  const sentence = event_text(last.event === "worker_spawned" ? { ...last, pid: undefined } : last);
  return sentence
    .replace(`rank ${text(last.rank)}`, () => ranks)
    .replace(" wrote its first", " wrote their first")
    .replace("its group", "their groups");
}

export function fold_events(events: readonly JobEvent[]): EventRow[] {
  const rows: EventRow[] = [];
  for (let i = 0; i < events.length;) {
    const first = events[i];
    if (!first) break;
    const like = likeness(first);
    let end = i + 1;
    while (like !== null && events[end] && likeness(events[end] as JobEvent) === like) ++end;
    const run = events.slice(i, end);
    rows.push({ first, last: run.at(-1) ?? first, count: run.length, text: folded_text(run) });
    i = end;
  }
  return rows;
}

export function event_time_us(event: JobEvent): number {
  return Date.parse(event.time) * 1_000 || 0;
}

export function since_start(event: JobEvent): string {
  return `+${span_text(event.mono_us / 1e6)}`;
}
