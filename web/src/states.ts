// SPDX-License-Identifier: Apache-2.0
// How the states of ranks, attempts and the job are called and told apart: by a word, a letter, a
// shape (the class, overview.css) and a colour, never by the colour alone.
import type { Attempt, AttemptEnd, Job, Rank, RankEnd } from "./api";

// "lost": it was running when its muster was killed; nobody knows its end.
// "suspect": it runs, and is what a stalled job hangs on.
export type ShownState =
  "pending" | "running" | "suspect" | "exited" | "failed" | "stopped" | "lost";

export const kStateLetters: Record<ShownState, string> = {
  pending: "p",
  running: "r",
  suspect: "u",
  exited: "e",
  failed: "f",
  stopped: "s",
  lost: "l",
};
export const kStateOfLetter: Record<string, ShownState> = Object.fromEntries(
  Object.entries(kStateLetters).map(([state, letter]) => [letter, state as ShownState]),
);
// Failures first: the order of the legend and of the table.
export const kStates: readonly ShownState[] = [
  "failed",
  "lost",
  "suspect",
  "stopped",
  "running",
  "pending",
  "exited",
];

export const kStateWords: Record<ShownState, string> = {
  pending: "not started",
  running: "running",
  suspect: "suspect",
  exited: "finished",
  failed: "failed",
  stopped: "stopped",
  lost: "lost",
};
export const kStateMarks: Record<ShownState, string> = {
  pending: "·",
  running: "▸",
  suspect: "!",
  exited: "✓",
  failed: "✕",
  stopped: "■",
  lost: "?",
};

export const kNobody: ReadonlySet<number> = new Set();

export function shown_state(
  rank: Pick<Rank, "rank" | "state"> | undefined,
  attempt: AttemptEnd | undefined,
  suspects: ReadonlySet<number> = kNobody,
): ShownState {
  const state: RankEnd | undefined = rank?.state;
  if (state === "spawn_failed") return "failed";
  if (attempt === "lost" && (state === "running" || !state)) return "lost";
  if (rank && state === "running" && suspects.has(rank.rank)) return "suspect";
  return state ?? "pending";
}

export function runs(state: ShownState): boolean {
  return state === "running" || state === "suspect";
}

// The states of the ranks [first, first + count) as one string, a letter each. It is compared to
// know whether a node has to be drawn again.
export function state_letters(
  ranks: ReadonlyMap<number, Rank>,
  first: number,
  count: number,
  end: AttemptEnd | undefined,
  suspects: ReadonlySet<number> = kNobody,
): string {
  let letters = "";
  for (let rank = first; rank < first + count; ++rank) {
    letters += kStateLetters[shown_state(ranks.get(rank), end, suspects)];
  }
  return letters;
}

export function count_states(
  ranks: ReadonlyMap<number, Rank>,
  attempt: Attempt,
  suspects: ReadonlySet<number> = kNobody,
): Record<ShownState, number> {
  const counts: Record<ShownState, number> = {
    pending: 0,
    running: 0,
    suspect: 0,
    exited: 0,
    failed: 0,
    stopped: 0,
    lost: 0,
  };
  for (const span of attempt.nodes) {
    for (let rank = span.first_rank; rank < span.first_rank + span.workers; ++rank) {
      ++counts[shown_state(ranks.get(rank), attempt.state, suspects)];
    }
  }
  return counts;
}

export type Tone = "running" | "done" | "failed" | "stopped" | "waiting" | "quiet";

// The job in one word.
export function job_word(job: Job): { word: string; tone: Tone } {
  if (job.outcome === "failed") return { word: "failed", tone: "failed" };
  if (job.outcome === "succeeded") return { word: "succeeded", tone: "done" };
  if (job.outcome === "stopped") return { word: "stopped", tone: "stopped" };
  if (!job.live) return { word: "killed", tone: "failed" };
  switch (job.phase) {
    case "running":
      return { word: "running", tone: "running" };
    case "stalled":
      return { word: "stalled", tone: "failed" };
    case "waiting":
      return { word: "waiting", tone: "waiting" };
    case "stopping":
    case "restarting":
      return { word: job.phase, tone: "stopped" };
    default:
      return { word: job.phase, tone: "quiet" };
  }
}

export const kToneMarks: Record<Tone, string> = {
  running: "▸",
  done: "✓",
  failed: "✕",
  stopped: "■",
  waiting: "…",
  quiet: "·",
};
export const kAttemptTones: Record<AttemptEnd, Tone> = {
  running: "running",
  succeeded: "done",
  failed: "failed",
  stopped: "stopped",
  lost: "failed",
};
