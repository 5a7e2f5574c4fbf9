// SPDX-License-Identifier: Apache-2.0
// What is to be said of one rank, for the tooltip, the screen reader and the table.
import type { Rank, Sample } from "../api";
import { bytes_text, number_text, signal_text, span_text } from "../format";
import { kStateWords, runs, type ShownState } from "../states";

export function end_text(rank: Rank): string {
  if (rank.signal) return signal_text(rank.signal);
  return rank.exit_code != null ? `exit code ${rank.exit_code}` : "";
}

export function step_text(sample: Sample | undefined): string {
  if (sample?.step == null || sample.step < 0) return "";
  return sample.steps != null && sample.steps > 0
    ? `${sample.step} of ${sample.steps}`
    : String(sample.step);
}

// 0..1, or null without a known end.
export function progress_of(sample: Sample | undefined): number | null {
  if (sample?.step == null || !sample.steps || sample.steps < 1 || sample.step < 0) return null;
  return Math.min(1, sample.step / sample.steps);
}

export function output_age_s(sample: Sample | undefined, now_us: number): number | null {
  return sample?.last_output_us ? Math.max(0, (now_us - sample.last_output_us) / 1e6) : null;
}

export function age_text(seconds: number): string {
  return seconds < 2 ? "now" : `${span_text(Math.floor(seconds))} ago`;
}

export function operation_text(
  operation: NonNullable<Sample["operation"]>,
  now_us: number,
): string {
  const seconds = Math.max(0, (now_us - operation.since_us) / 1e6);
  if (operation.state === "running") return `in ${operation.call} for ${span_text(seconds)}`;
  return `${operation.call} ${operation.state === "done" ? "ended" : "failed"} ${age_text(seconds)}`;
}

// What its process is in, as proc(5) calls it.
const kProcessStates: Record<string, string> = {
  R: "uses a core",
  S: "waits",
  D: "waits in the kernel, nobody can end it",
  T: "is stopped",
  t: "is stopped by a debugger",
  Z: "has ended",
};

export function process_text(sample: Sample | undefined): string {
  if (!sample) return "";
  if (sample.spins) return "spins: uses a core and does nothing else";
  const state = sample.process_state ?? "";
  const text = kProcessStates[state] ?? state;
  return sample.wait_channel ? `${text || "waits"} (${sample.wait_channel})` : text;
}

// From ten seconds on: until then a look at it may be as old.
const kQuiet_s = 10;

function life_facts(sample: Sample, now_us: number): Facts {
  const facts: Facts = [];
  const quiet_s = sample.alive_us ? (now_us - sample.alive_us) / 1e6 : 0;
  if (quiet_s >= kQuiet_s) facts.push(["last sign of life", age_text(quiet_s)]);
  const process = process_text(sample);
  if (process && (quiet_s >= kQuiet_s || sample.spins)) facts.push(["process", process]);
  return facts;
}

export type Facts = [name: string, value: string][];

export function rank_facts(
  rank: Rank | undefined,
  state: ShownState,
  sample: Sample | undefined,
  now_us: number,
): Facts {
  const facts: Facts = [["state", kStateWords[state]]];
  if (!rank) return facts;
  const running = runs(state);
  const ended = end_text(rank);
  if (!running && ended) facts.push(["end", ended]);
  if (rank.stopped_for) facts.push(["stopped for", rank.stopped_for]);
  if (rank.started_us) {
    const until = running ? now_us : (rank.ended_us ?? now_us);
    facts.push([running ? "running for" : "ran for", span_text((until - rank.started_us) / 1e6)]);
  }
  if (rank.pid) facts.push(["pid", String(rank.pid)]);
  const step = step_text(sample);
  if (step) facts.push(["step", step]);
  if (sample?.loss != null) facts.push(["loss", number_text(sample.loss)]);
  for (const [name, value] of sample?.values ?? [])
    if (value != null) facts.push([name, number_text(value)]);
  if (running && sample) {
    if (sample.operation) facts.push(["operation", operation_text(sample.operation, now_us)]);
    facts.push(...life_facts(sample, now_us));
    if (sample.heartbeat_us)
      facts.push(["last report", age_text(Math.max(0, (now_us - sample.heartbeat_us) / 1e6))]);
    const age = output_age_s(sample, now_us);
    if (age !== null) facts.push(["last output", age_text(age)]);
    if (sample.cpu != null && sample.cpu >= 0)
      facts.push(["CPU", `${number_text(sample.cpu)} cores`]);
    if (sample.rss_bytes != null && sample.rss_bytes >= 0)
      facts.push(["memory", bytes_text(sample.rss_bytes)]);
    if (sample.gpu != null && sample.gpu >= 0)
      facts.push(["GPU", `${Math.round(sample.gpu * 100)} %`]);
    if (sample.gpu_memory_bytes != null && sample.gpu_memory_bytes >= 0)
      facts.push(["GPU memory", bytes_text(sample.gpu_memory_bytes)]);
  } else if (rank.max_rss_bytes) {
    facts.push(["peak memory", bytes_text(rank.max_rss_bytes)]);
  }
  return facts;
}

export function facts_sentence(rank: number, host: string, facts: Facts): string {
  const [state, ...rest] = facts;
  const tail = rest.map(([name, value]) => `${name} ${value}`).join(", ");
  return `rank ${rank} on ${host}: ${state?.[1] ?? ""}${tail ? `, ${tail}` : ""}`;
}
