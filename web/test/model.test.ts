// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Job, JobEvent, Rank, StateMessage } from "../src/api";
import {
  apply_change,
  apply_samples,
  apply_state,
  kMaxRankEvents,
  kNothing,
  merge_events,
} from "../src/model";

const job = (attempt: number, run_id = "run"): Job =>
  ({ run_id, attempt, phase: "running", live: true }) as Job;
const rank = (attempt: number, number: number, state: Rank["state"]): Rank =>
  ({ attempt, rank: number, state, node: 0 }) as Rank;
const event = (seq: number, name = "trouble"): JobEvent => ({
  seq,
  time: "",
  mono_us: 0,
  event: name,
});
const whole: StateMessage = {
  seq: 4,
  job: job(0),
  nodes: [],
  attempts: [],
  ranks: [rank(0, 0, "running"), rank(0, 1, "running")],
  events: [event(3), event(4)],
};

test("a changed row replaces that of its rank and leaves the others", () => {
  const model = apply_change(
    { seq: 5, ranks: [rank(0, 1, "failed")] },
    apply_state(whole, kNothing),
  );
  assert.deepEqual(
    [...model.ranks.values()].map((row) => row.state),
    ["running", "failed"],
  );
});

test("a new attempt begins without the ranks and samples of the one before", () => {
  const before = apply_samples([{ rank: 0, time_us: 1 }], apply_state(whole, kNothing));
  const model = apply_change({ seq: 6, job: job(1), ranks: [rank(1, 0, "pending")] }, before);
  assert.deepEqual([...model.ranks.values()], [rank(1, 0, "pending")]);
  assert.equal(model.samples.size, 0);
});

test("rows of an earlier attempt do not show in the current one", () => {
  const model = apply_change(
    { seq: 6, ranks: [rank(7, 0, "failed")] },
    apply_state(whole, kNothing),
  );
  assert.equal(model.ranks.get(0)?.state, "running");
});

test("an event that is sent twice is kept once, in order", () => {
  const events = merge_events([event(1), event(2), event(5)], [event(2), event(3)]);
  assert.deepEqual(
    events.map((row) => row.seq),
    [1, 2, 3, 5],
  );
});

test("of the events of single ranks the oldest go, the others stay", () => {
  const many = Array.from({ length: kMaxRankEvents + 10 }, (_, i) =>
    event(i + 1, "worker_spawned"),
  );
  const events = merge_events([event(0, "job_started")], many);
  assert.equal(events.length, kMaxRankEvents + 1);
  assert.equal(events[0]?.event, "job_started");
  assert.equal(events[1]?.seq, 11);
});

test("the state of another run replaces everything", () => {
  const other = { ...whole, job: job(0, "other"), events: [event(0)], ranks: [] };
  const model = apply_state(other, apply_state(whole, kNothing));
  assert.equal(model.ranks.size, 0);
  assert.deepEqual(
    model.events.map((row) => row.seq),
    [0],
  );
});
