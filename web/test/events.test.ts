// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JobEvent } from "../src/api";
import { event_text, fold_events, group_of } from "../src/overview/event_text";
import { clamp_span, ticks } from "../src/overview/timeline";

const event = (seq: number, name: string, more: object = {}): JobEvent => ({
  seq,
  time: "",
  mono_us: 0,
  event: name,
  ...more,
});
const spawned = (seq: number, rank: number) =>
  event(seq, "worker_spawned", { attempt: 0, rank, pid: 100 + rank });

test("the start of many workers is one row", () => {
  const rows = fold_events([
    spawned(0, 0),
    spawned(1, 1),
    spawned(2, 3),
    event(3, "trouble", { subject: "logs", message: "full" }),
  ]);
  assert.deepEqual(
    rows.map((row) => row.text),
    ["ranks 0-1,3 started", "logs: full"],
  );
  assert.equal(rows[0]?.count, 3);
});

test("workers that ended in different ways are told apart", () => {
  const exited = (seq: number, rank: number, exit_code: number) =>
    event(seq, "worker_exited", { attempt: 0, rank, exit_code, signal: 0 });
  const rows = fold_events([exited(0, 0, 0), exited(1, 1, 0), exited(2, 2, 1)]);
  assert.deepEqual(
    rows.map((row) => row.text),
    ["ranks 0-1 exited with 0", "rank 2 exited with 1"],
  );
});

test("a rank's number that is part of another is not taken for it", () => {
  const sent = (seq: number, rank: number) =>
    event(seq, "signal_sent", { attempt: 0, rank, signal: 15, reason: "failure" });
  assert.equal(
    fold_events([sent(0, 11), sent(1, 1)])[0]?.text,
    "SIGTERM sent to ranks 1,11: another worker failed",
  );
});

test("an event of a later version is shown by its name", () => {
  assert.equal(event_text(event(0, "moon_rose")), "moon rose");
  assert.equal(group_of(event(0, "moon_rose")), "attempts");
});

test("a part of the timeline stays within the run", () => {
  assert.deepEqual(clamp_span([-5e6, 5e6], [0, 20e6]), [0, 10e6]);
  assert.deepEqual(clamp_span([19.9e6, 20e6], [0, 20e6]), [19e6, 20e6]);
  assert.deepEqual(clamp_span([0, 90e6], [0, 20e6]), [0, 20e6]);
});

test("an axis has few marks at round times", () => {
  assert.deepEqual(ticks(754, 6), [0, 300, 600]);
  assert.ok(ticks(10 * 86_400, 6).length <= 7);
});
