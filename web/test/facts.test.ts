// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Rank, Sample } from "../src/api";
import { event_text, group_of } from "../src/overview/event_text";
import { rank_facts } from "../src/overview/rank_facts";

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
