// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt, Failure, Job, Rank, Sample } from "../src/api";
import { event_text, group_of } from "../src/overview/event_text";
import { failure_as_text } from "../src/overview/failure_text";
import { rank_facts } from "../src/overview/rank_facts";
import { count_states, job_word, shown_state, state_letters } from "../src/states";

const kNow = 1_000_000_000;
const rank = { rank: 0, pid: 7, started_us: kNow - 90_000_000 } as Rank;

function facts_of(sample: Partial<Sample>): Map<string, string> {
  const whole = { rank: 0, time_us: kNow, ...sample };
  return new Map(rank_facts(rank, "running", whole, kNow));
}

test("a rank's named values, its last report and its operation are told", () => {
  const facts = facts_of({
    values: [
      ["accuracy", 0.93],
      ["lr", null],
    ],
    heartbeat_us: kNow - 5_000_000,
    operation: {
      call: "all_reduce #128 (4.2 MB, float32)",
      state: "running",
      since_us: kNow - 61_000_000,
    },
  });
  assert.equal(facts.get("accuracy"), "0.93");
  assert.ok(!facts.has("lr"));
  assert.match(facts.get("last report") ?? "", /^5(\.0)? s ago$/);
  assert.match(facts.get("operation") ?? "", /^in all_reduce #128 \(4.2 MB, float32\) for 1 min/);
});

test("an operation that has ended is told with when", () => {
  const call = "barrier #3";
  const of = (state: "done" | "failed") =>
    facts_of({ operation: { call, state, since_us: kNow - 8_000_000 } }).get("operation");
  assert.equal(of("done"), "barrier #3 ended 8.0 s ago");
  assert.equal(of("failed"), "barrier #3 failed 8.0 s ago");
});

test("a rank that tells nothing has no such facts", () => {
  assert.ok(!facts_of({}).has("operation"));
  assert.ok(!facts_of({ operation: null, values: [] }).has("last report"));
});

test("what the workers were doing is an event among the failures", () => {
  const event = {
    seq: 1,
    time: "",
    mono_us: 0,
    event: "collectives_found",
    found: [{ text: "rank 3 never entered all_reduce #128" }, { text: "b" }],
  };
  assert.equal(group_of(event), "failures");
  assert.equal(event_text(event), "rank 3 never entered all_reduce #128; b");
});

test("signs of life are told of a rank that gives none, and of no other", () => {
  const quiet = facts_of({
    alive_us: kNow - 300_000_000,
    process_state: "D",
    wait_channel: "nfs_wait_bit",
  });
  assert.equal(quiet.get("last sign of life"), "5 min ago");
  assert.equal(quiet.get("process"), "waits in the kernel, nobody can end it (nfs_wait_bit)");
  const lively = facts_of({ alive_us: kNow - 4_000_000, process_state: "S", wait_channel: "poll" });
  assert.ok(!lively.has("last sign of life") && !lively.has("process"));
  const spinning = facts_of({ alive_us: kNow - 60_000_000, spins: true, process_state: "R" });
  assert.match(spinning.get("process") ?? "", /^spins/);
  assert.equal(facts_of({ alive_us: kNow - 60_000_000, wait_channel: "x" }).get("process"), "waits (x)");
  assert.ok(!facts_of({ spins: false, process_state: "", wait_channel: "" }).has("process"));
});

test("what a stalled job hangs on is told from the ranks that only wait", () => {
  const rows = [0, 1, 2].map((rank) => ({ rank, state: rank === 2 ? "exited" : "running" }) as Rank);
  const ranks = new Map(rows.map((row) => [row.rank, row]));
  const suspects = new Set([1, 2]);
  const attempt = { state: "running", nodes: [{ first_rank: 0, workers: 3 }] } as Attempt;
  assert.equal(state_letters(ranks, 0, 3, "running", suspects), "rue");
  assert.equal(count_states(ranks, attempt, suspects).suspect, 1);
  assert.equal(shown_state(rows[1], "lost", suspects), "lost");
  assert.deepEqual(job_word({ live: true, phase: "stalled" } as Job), {
    word: "stalled",
    tone: "failed",
  });
});

test("a stall, its end, saved stacks and a delay are events in words", () => {
  const of = (event: string, keys: object) =>
    event_text({ seq: 1, time: "", mono_us: 0, event, ...keys });
  assert.equal(of("stall_found", { text: "rank 1 spins" }), "no progress: rank 1 spins");
  assert.equal(of("stall_over", { how: "rank 1 wrote" }), "the job goes on: rank 1 wrote");
  assert.match(
    of("evidence_saved", { host: "a", folder: "/f", trouble: "no py-spy" }),
    /on a: \/f; no py-spy$/,
  );
  const restart = { next_attempt: 1, used: 1, max: 3 };
  assert.match(of("restart_scheduled", { ...restart, delay_ms: 30_000 }), /3, put off for 30 s$/);
  assert.match(of("restart_scheduled", { ...restart, delay_ms: 0 }), /restart 1 of 3$/);
});

test("the line that shows a failure is copied once, with the evidence and whom it blames", () => {
  const failure = {
    rank: 1,
    local_rank: 1,
    host: "a",
    attempt: 0,
    kind: "oom_kill",
    message: "killed",
    excerpt: ["step 7"],
    excerpt_source: "stdout",
    line: "oom-kill: task=python",
    line_source: "kernel log",
    evidence: ["peak memory 15.9 GiB"],
    victim: true,
    blames: "0,2",
  } as Failure;
  const attempt = { victims: [], saved: [{ host: "a", folder: "/stacks" }] } as unknown as Attempt;
  const text = failure_as_text({ run_id: "r" } as Job, attempt, failure);
  assert.match(text, /shown by +kernel log: oom-kill: task=python\n/);
  assert.match(text, /evidence +peak memory 15.9 GiB\n/);
  assert.match(text, /victim of +ranks 0,2\n/);
  assert.match(text, /stacks +\/stacks on a\n/);
  const plain = failure_as_text({ run_id: "r" } as Job, attempt, { ...failure, line: "step 7" });
  assert.ok(!plain.includes("shown by"));
});
