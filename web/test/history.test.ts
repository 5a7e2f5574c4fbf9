// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { History, kMaxBuckets } from "../src/overview/history";
import { nearest } from "../src/overview/chart";

const at = (seconds: number) => 1_700_000_000e6 + seconds * 1e6;

test("ranks that were measured at the same time are one point with a range", () => {
  const history = new History();
  history.add([
    { rank: 0, time_us: at(0), cpu: 1 },
    { rank: 1, time_us: at(0), cpu: 3 },
  ]);
  const [point] = history.points("cpu");
  assert.deepEqual([point?.mean, point?.min, point?.max], [2, 1, 3]);
});

test("a sample that comes again counts once", () => {
  const history = new History();
  history.add([{ rank: 0, time_us: at(0), loss: 1 }]);
  history.add([
    { rank: 0, time_us: at(0), loss: 1 },
    { rank: 0, time_us: at(0.1), loss: 3 },
  ]);
  assert.equal(history.points("loss")[0]?.mean, 2);
});

test("a long run is kept in a bounded number of points that keep their extremes", () => {
  const history = new History();
  for (let second = 0; second < 100_000; second += 10)
    history.add([{ rank: 0, time_us: at(second), loss: second === 5_000 ? 99 : 1 }]);
  const points = history.points("loss");
  assert.ok(points.length <= kMaxBuckets + 1);
  assert.ok(points.length > kMaxBuckets / 2 - 2);
  assert.equal(Math.max(...points.map((point) => point.max)), 99);
});

test("what is not known is no zero", () => {
  const history = new History();
  history.add([{ rank: 0, time_us: at(0), gpu: null, cpu: -1, loss: -0.5 }]);
  assert.equal(history.points("gpu").length, 0);
  assert.equal(history.points("cpu").length, 0);
  assert.equal(history.points("loss").length, 1);
});

test("the point next to a moment is found", () => {
  const points = [0, 10, 20].map((time_us) => ({ time_us, mean: time_us, min: 0, max: 0 }));
  assert.equal(nearest(points, 14)?.time_us, 10);
  assert.equal(nearest(points, 16)?.time_us, 20);
  assert.equal(nearest(points, -5)?.time_us, 0);
  assert.equal(nearest([], 3), undefined);
});
