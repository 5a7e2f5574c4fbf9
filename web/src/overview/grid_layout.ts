// SPDX-License-Identifier: Apache-2.0
// How the grid of ranks is laid out for any number of them, and how arrow keys move in it.
import type { NodeSpan } from "../api";

export type CellSize = "large" | "medium" | "small" | "tiny";

// Side of a cell with its gap, in pixels; overview.css has the same.
export const kCellPitch: Record<CellSize, number> = { large: 60, medium: 34, small: 20, tiny: 11 };
const kNodeGap = 6;
// Up to so many nodes each has a heading with its name.
export const kMaxNamedNodes = 48;

export interface Layout {
  size: CellSize;
  named: boolean;
  // Of the compact form: how many nodes stand in a row.
  nodes_per_row: number;
}

export function choose_layout(spans: readonly NodeSpan[], width: number): Layout {
  const world = spans.reduce((count, span) => count + span.workers, 0);
  const size: CellSize =
    world <= 16 ? "large" : world <= 128 ? "medium" : world <= 768 ? "small" : "tiny";
  const named = spans.length <= kMaxNamedNodes;
  const widest = spans.reduce((most, span) => Math.max(most, span.workers), 1);
  const nodes_per_row = Math.max(
    1,
    Math.floor((width + kNodeGap) / (widest * kCellPitch[size] + kNodeGap)),
  );
  return { size, named, nodes_per_row };
}

export function node_index_of(spans: readonly NodeSpan[], rank: number): number {
  let low = 0;
  let high = spans.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((spans[middle]?.first_rank ?? 0) <= rank) low = middle;
    else high = middle - 1;
  }
  return low;
}

// The rank that a key leads to, or null if it is none of the grid's keys.
export function move(
  key: string,
  rank: number,
  spans: readonly NodeSpan[],
  layout: Layout,
): number | null {
  const first = spans[0]?.first_rank ?? 0;
  const last_span = spans.at(-1);
  const last = last_span ? last_span.first_rank + last_span.workers - 1 : first;
  const within = (target: number) => Math.min(last, Math.max(first, target));
  // The same place in another node.
  const beside = (nodes: number) => {
    const at = node_index_of(spans, rank);
    const target = spans[Math.min(spans.length - 1, Math.max(0, at + nodes))];
    const here = spans[at];
    if (!target || !here || target === here) return rank;
    return target.first_rank + Math.min(rank - here.first_rank, target.workers - 1);
  };
  const row = layout.named ? 1 : layout.nodes_per_row;
  switch (key) {
    case "ArrowRight":
      return within(rank + 1);
    case "ArrowLeft":
      return within(rank - 1);
    case "ArrowDown":
      return beside(row);
    case "ArrowUp":
      return beside(-row);
    case "PageDown":
      return beside(row * 8);
    case "PageUp":
      return beside(-row * 8);
    case "Home":
      return first;
    case "End":
      return last;
    default:
      return null;
  }
}
