// SPDX-License-Identifier: Apache-2.0
// The cells of the grid of ranks. They are drawn from a string of letters a node, so that only nodes
// whose ranks changed are drawn again.
import { Component } from "preact";
import type { Attempt, JobNode, NodeSpan, Rank, Sample } from "../api";
import { kStateMarks, kStateOfLetter } from "../states";
import type { CellSize, Layout } from "./grid_layout";
import { progress_of } from "./rank_facts";

interface CellsProps {
  first: number;
  letters: string;
  size: CellSize;
  active: number; // the rank that the keyboard is at, -1: none of these
}

class Cells extends Component<CellsProps> {
  override shouldComponentUpdate(next: CellsProps): boolean {
    const { first, letters, size, active } = this.props;
    return (
      first !== next.first ||
      letters !== next.letters ||
      size !== next.size ||
      active !== next.active
    );
  }

  override render({ first, letters, size, active }: CellsProps) {
    const numbered = size === "large" || size === "medium";
    return (
      <div class={`cells ${size}`}>
        {[...letters].map((letter, i) => {
          const state = kStateOfLetter[letter] ?? "pending";
          const rank = first + i;
          return (
            <i class={`c ${state}${rank === active ? " active" : ""}`} data-rank={rank}>
              {numbered && <b>{rank}</b>}
              {size !== "tiny" && state !== "running" && <u>{kStateMarks[state]}</u>}
            </i>
          );
        })}
      </div>
    );
  }
}

// Thin bars under large cells, of what the workers say of their progress.
function Bars({ span, samples }: { span: NodeSpan; samples: ReadonlyMap<number, Sample> }) {
  const bars = Array.from({ length: span.workers }, (_, i) =>
    progress_of(samples.get(span.first_rank + i)),
  );
  if (bars.every((part) => part === null)) return null;
  return (
    <div class="cell-bars">
      {bars.map((part) => (
        <i>{part !== null && <b style={{ width: `${part * 100}%` }} />}</i>
      ))}
    </div>
  );
}

function lost_node(span: NodeSpan, nodes: readonly JobNode[]): JobNode | undefined {
  return nodes.find((node) => node.id === span.id && !node.here && node.lost);
}

function NodeName({ span, lost }: { span: NodeSpan; lost: JobNode | undefined }) {
  const last = span.first_rank + span.workers - 1;
  return (
    <div class="node-name">
      <span class="foreign name" title={span.host}>
        {span.host}
      </span>
      <span class="muted">
        {" "}
        {span.workers > 1 ? `${span.first_rank}–${last}` : span.first_rank}
      </span>
      {lost && (
        <span class="lost-mark foreign"> ✕ lost{lost.lost ? `: ${lost.lost.message}` : ""}</span>
      )}
    </div>
  );
}

export interface GridProps {
  attempt: Attempt;
  current: boolean; // as against an earlier attempt
  nodes: readonly JobNode[];
  ranks: ReadonlyMap<number, Rank>;
  samples: ReadonlyMap<number, Sample>;
  suspects: ReadonlySet<number>; // what a stalled job hangs on
}

export function NamedNodes({
  attempt,
  nodes,
  current,
  samples,
  layout,
  active,
  letters,
}: GridProps & { layout: Layout; active: number; letters: (span: NodeSpan) => string }) {
  return (
    <div class={`nodes named ${layout.size}`}>
      {attempt.nodes.map((span) => (
        <div class="node" key={span.node}>
          <NodeName span={span} lost={current ? lost_node(span, nodes) : undefined} />
          <Cells
            first={span.first_rank}
            letters={letters(span)}
            size={layout.size}
            active={
              active >= span.first_rank && active < span.first_rank + span.workers ? active : -1
            }
          />
          {layout.size === "large" && current && <Bars span={span} samples={samples} />}
        </div>
      ))}
    </div>
  );
}

// Many nodes: rows of equal blocks, each row with the rank that it begins with.
export function CompactNodes({
  attempt,
  layout,
  active,
  letters,
}: {
  attempt: Attempt;
  layout: Layout;
  active: number;
  letters: (span: NodeSpan) => string;
}) {
  const rows: NodeSpan[][] = [];
  for (let i = 0; i < attempt.nodes.length; i += layout.nodes_per_row)
    rows.push(attempt.nodes.slice(i, i + layout.nodes_per_row));
  return (
    <div class={`nodes compact ${layout.size}`}>
      {rows.map((row) => (
        <div class="node-row">
          <span class="gutter">{row[0]?.first_rank}</span>
          {row.map((span) => (
            <Cells
              key={span.node}
              first={span.first_rank}
              letters={letters(span)}
              size={layout.size}
              active={
                active >= span.first_rank && active < span.first_rank + span.workers ? active : -1
              }
            />
          ))}
        </div>
      ))}
    </div>
  );
}
