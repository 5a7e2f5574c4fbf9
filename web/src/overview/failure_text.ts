// SPDX-License-Identifier: Apache-2.0
// A failure in words, for the page's headings and for the clipboard.
import type { Attempt, Failure, Job } from "../api";
import { date_time_text, plural, signal_text, span_text } from "../format";

export function who_failed(failure: Failure): string {
  if (failure.rank < 0) return `node ${failure.host}`;
  const local = failure.local_rank !== failure.rank ? ` (local ${failure.local_rank})` : "";
  return `rank ${failure.rank}${local} on ${failure.host}`;
}

export function how_it_ended(failure: Failure): string {
  if (failure.signal) return `killed by ${signal_text(failure.signal)}`;
  return failure.exit_code === null || failure.exit_code === undefined
    ? ""
    : `exit code ${failure.exit_code}`;
}

export function headline(failure: Failure): string {
  const ran =
    failure.ran_us != null && failure.ran_us >= 0
      ? ` after ${span_text(failure.ran_us / 1e6)}`
      : "";
  const verb = failure.rank < 0 ? "was lost" : "failed";
  return `${who_failed(failure)} ${verb}${ran}`;
}

export function count_ranks(groups: readonly { ranks: string }[]): number {
  let count = 0;
  for (const { ranks } of groups) {
    for (const part of ranks.split(",")) {
      const [first, last] = part.split("-").map(Number);
      if (Number.isFinite(first)) count += (last ?? first ?? 0) - (first ?? 0) + 1;
    }
  }
  return count;
}

function field(name: string, value: string): string {
  return value ? `  ${name.padEnd(12)} ${value}` : "";
}

// As the console's report has it, for a ticket or a chat.
export function failure_as_text(job: Job, attempt: Attempt | undefined, failure: Failure): string {
  const facts = [
    failure.pid ? `pid ${failure.pid}` : "",
    `attempt ${failure.attempt}`,
    failure.kind,
    how_it_ended(failure),
    failure.time_us ? date_time_text(failure.time_us) : "",
  ].filter(Boolean);
  const others = attempt?.victims ?? [];
  const lines = [
    `muster run ${job.run_id}: ${headline(failure)} · ${failure.message}`,
    field("root cause", facts.join(" · ")),
    field("reason", failure.reason ?? ""),
    field("hint", failure.hint ?? ""),
    failure.line && !failure.excerpt.includes(failure.line)
      ? field("shown by", `${failure.line_source ? `${failure.line_source}: ` : ""}${failure.line}`)
      : "",
    ...(failure.evidence ?? []).map((line) => field("evidence", line)),
    failure.victim ? field("victim of", failure.blames ? `ranks ${failure.blames}` : "another") : "",
    failure.excerpt.length ? field("last lines", failure.excerpt_source) : "",
    ...failure.excerpt.map((line) => `    ${line}`),
    field("note", failure.note ?? ""),
    ...others.map((group) =>
      field("victims", `${plural(count_ranks([group]), "rank")} ${group.ranks} (${group.reason})`),
    ),
    ...(attempt?.saved ?? []).map((saved) => field("stacks", `${saved.folder} on ${saved.host}`)),
    field("log", failure.stderr_log || failure.stdout_log || ""),
  ];
  return `${lines.filter(Boolean).join("\n")}\n`;
}
