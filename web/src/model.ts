// SPDX-License-Identifier: Apache-2.0
// What the page knows of the job: a plain value, changed only by the messages of the event stream
// (docs/api.md). The components draw it; live.ts carries the messages here.
import type {
  Attempt,
  ChangeMessage,
  Job,
  JobEvent,
  JobNode,
  Rank,
  Sample,
  StateMessage,
} from "./api";

// Of the events of single ranks only the newest are kept: a job of 4,096 ranks has many.
export const kMaxRankEvents = 20_000;
const kRankEvents = new Set(["worker_spawned", "worker_exited", "first_output", "signal_sent"]);

export interface Model {
  seq: number;
  job: Job | null; // null: nothing has been heard yet
  nodes: readonly JobNode[];
  attempts: readonly Attempt[];
  // Of the current attempt.
  ranks: ReadonlyMap<number, Rank>;
  events: readonly JobEvent[]; // oldest first
  samples: ReadonlyMap<number, Sample>;
}

export const kNothing: Model = {
  seq: -1,
  job: null,
  nodes: [],
  attempts: [],
  ranks: new Map(),
  events: [],
  samples: new Map(),
};

// Rows replace those of the same key, new ones are added at the end.
function merge<Row>(
  old: readonly Row[],
  rows: readonly Row[] | undefined,
  key: (row: Row) => unknown,
): readonly Row[] {
  if (!rows?.length) return old;
  const all = new Map(old.map((row) => [key(row), row]));
  for (const row of rows) all.set(key(row), row);
  return [...all.values()];
}

function merge_ranks(
  old: Model,
  attempt: number,
  rows: readonly Rank[],
): ReadonlyMap<number, Rank> {
  const same = old.job?.attempt === attempt;
  if (same && !rows.length) return old.ranks;
  const ranks = same ? new Map(old.ranks) : new Map<number, Rank>();
  for (const row of rows) {
    if (row.attempt === attempt) ranks.set(row.rank, row);
  }
  return ranks;
}

// Events in the order of their numbers, each once, within the bound.
export function merge_events(
  old: readonly JobEvent[],
  rows: readonly JobEvent[],
): readonly JobEvent[] {
  if (!rows.length) return old;
  const last = old.at(-1)?.seq ?? -1;
  let all: JobEvent[];
  if (rows.every((row, i) => row.seq > (i ? (rows[i - 1]?.seq ?? -1) : last))) {
    all = [...old, ...rows];
  } else {
    const by_seq = new Map(old.map((row) => [row.seq, row]));
    for (const row of rows) by_seq.set(row.seq, row);
    all = [...by_seq.values()].sort((a, b) => a.seq - b.seq);
  }
  let excess =
    all.reduce((count, row) => count + Number(kRankEvents.has(row.event)), 0) - kMaxRankEvents;
  if (excess <= 0) return all;
  return all.filter((row) => !kRankEvents.has(row.event) || excess-- <= 0);
}

// The whole state, first or after another server took over.
export function apply_state(message: StateMessage, old: Model): Model {
  const same_run = old.job?.run_id === message.job.run_id;
  return {
    seq: message.seq,
    job: message.job,
    nodes: message.nodes,
    attempts: message.attempts,
    ranks: new Map(
      message.ranks
        .filter((row) => row.attempt === message.job.attempt)
        .map((row) => [row.rank, row]),
    ),
    events: same_run ? merge_events(old.events, message.events) : message.events,
    samples: same_run && old.job?.attempt === message.job.attempt ? old.samples : new Map(),
  };
}

export function apply_change(message: ChangeMessage, old: Model): Model {
  const job = message.job ?? old.job;
  const attempt = job?.attempt ?? 0;
  return {
    seq: message.seq,
    job,
    nodes: merge(old.nodes, message.nodes, (row) => row.id),
    attempts: merge(old.attempts, message.attempts, (row) => row.attempt),
    ranks: merge_ranks(old, attempt, message.ranks ?? []),
    events: merge_events(old.events, message.events ?? []),
    samples: old.job?.attempt === attempt ? old.samples : new Map(),
  };
}

export function apply_samples(samples: readonly Sample[], old: Model): Model {
  const all = new Map(old.samples);
  for (const sample of samples) all.set(sample.rank, sample);
  return { ...old, samples: all };
}
