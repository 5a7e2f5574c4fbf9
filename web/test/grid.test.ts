// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSpan, Rank } from "../src/api";
import { choose_layout, move } from "../src/overview/grid_layout";
import { state_letters } from "../src/states";

const spans = (sizes: number[]): NodeSpan[] => {
  let first_rank = 0;
  return sizes.map((workers, node) => {
    const span = { id: `${node}`, node, host: `n${node}`, first_rank, workers };
    first_rank += workers;
    return span;
  });
};

test("cells shrink with the world, names go where there are many nodes", () => {
  assert.deepEqual(choose_layout(spans([8]), 1200).size, "large");
  assert.equal(choose_layout(spans([8]), 1200).named, true);
  const large = choose_layout(spans(Array<number>(512).fill(8)), 1200);
  assert.deepEqual([large.size, large.named], ["tiny", false]);
  assert.ok(large.nodes_per_row >= 12);
});

test("arrows lead to the neighbour, and to the same place in another node", () => {
  const nodes = spans([4, 4, 2]);
  const layout = choose_layout(nodes, 1000);
  assert.equal(move("ArrowRight", 3, nodes, layout), 4);
  assert.equal(move("ArrowDown", 1, nodes, layout), 5);
  assert.equal(move("ArrowDown", 7, nodes, layout), 9);
  assert.equal(move("ArrowUp", 2, nodes, layout), 2);
  assert.equal(move("End", 0, nodes, layout), 9);
  assert.equal(move("x", 0, nodes, layout), null);
});

test("a rank that was running when its muster was killed is lost", () => {
  const ranks = new Map([
    [0, { state: "running" } as Rank],
    [1, { state: "exited" } as Rank],
    [2, { state: "spawn_failed" } as Rank],
  ]);
  assert.equal(state_letters(ranks, 0, 4, "lost"), "lefl");
  assert.equal(state_letters(ranks, 0, 4, "running"), "refp");
});
