// SPDX-License-Identifier: Apache-2.0
// All ranks by node, one cell each. The cells are drawn from a string of letters a node, so that
// only nodes whose ranks changed are drawn again. For the keyboard and screen readers the grid is a
// list box of which only the active option exists: 4,096 of them would help nobody.
import { Component } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { Attempt, JobNode, NodeSpan, Rank, Sample } from "../api";
import { useKeys } from "../keyboard";
import { server_now_us } from "../live";
import { logs_route, navigate } from "../router";
import { kStateLetters, kStateMarks, kStateOfLetter, kStates, kStateWords, shown_state, state_letters, count_states, type ShownState } from "../states";
import { choose_layout, move, node_index_of, type CellSize, type Layout } from "./grid_layout";
import { facts_sentence, progress_of, rank_facts } from "./rank_facts";
import { Tooltip, type TipPlace } from "./tooltip";

interface CellsProps {
  first: number;
  letters: string;
  size: CellSize;
  active: number; // the rank that the keyboard is at, -1: none of these
}

class Cells extends Component<CellsProps> {
  override shouldComponentUpdate(next: CellsProps): boolean {
    const { first, letters, size, active } = this.props;
    return first !== next.first || letters !== next.letters || size !== next.size || active !== next.active;
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
  const bars = Array.from({ length: span.workers }, (_, i) => progress_of(samples.get(span.first_rank + i)));
  if (bars.every((part) => part === null)) return null;
  return (
    <div class="cell-bars">
      {bars.map((part) => <i>{part !== null && <b style={{ width: `${part * 100}%` }} />}</i>)}
    </div>
  );
}

function lost_node(span: NodeSpan, nodes: readonly JobNode[]): JobNode | undefined {
  const same = nodes.filter((node) => node.host === span.host && (node.node === span.node || node.node < 0));
  return same.every((node) => !node.here && node.lost) ? same.at(-1) : undefined;
}

function NodeName({ span, lost }: { span: NodeSpan; lost: JobNode | undefined }) {
  const last = span.first_rank + span.workers - 1;
  return (
    <div class="node-name">
      <span class="foreign name" title={span.host}>{span.host}</span>
      <span class="muted"> {span.workers > 1 ? `${span.first_rank}–${last}` : span.first_rank}</span>
      {lost && <span class="lost-mark foreign"> ✕ lost{lost.lost ? `: ${lost.lost.message}` : ""}</span>}
    </div>
  );
}

interface GridProps {
  attempt: Attempt;
  current: boolean; // as against an earlier attempt
  nodes: readonly JobNode[];
  ranks: ReadonlyMap<number, Rank>;
  samples: ReadonlyMap<number, Sample>;
}

function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, set_width] = useState(0);
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => set_width(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}

function rank_of(target: EventTarget | null): number | null {
  const cell = target instanceof Element ? target.closest<HTMLElement>("[data-rank]") : null;
  return cell ? Number(cell.dataset["rank"]) : null;
}

function NamedNodes({ attempt, nodes, current, samples, layout, active, letters }: GridProps & { layout: Layout; active: number; letters: (span: NodeSpan) => string }) {
  return (
    <div class={`nodes named ${layout.size}`}>
      {attempt.nodes.map((span) => (
        <div class="node" key={span.node}>
          <NodeName span={span} lost={current ? lost_node(span, nodes) : undefined} />
          <Cells first={span.first_rank} letters={letters(span)} size={layout.size} active={active >= span.first_rank && active < span.first_rank + span.workers ? active : -1} />
          {layout.size === "large" && current && <Bars span={span} samples={samples} />}
        </div>
      ))}
    </div>
  );
}

// Many nodes: rows of equal blocks, each row with the rank that it begins with.
function CompactNodes({ attempt, layout, active, letters }: { attempt: Attempt; layout: Layout; active: number; letters: (span: NodeSpan) => string }) {
  const rows: NodeSpan[][] = [];
  for (let i = 0; i < attempt.nodes.length; i += layout.nodes_per_row) rows.push(attempt.nodes.slice(i, i + layout.nodes_per_row));
  return (
    <div class={`nodes compact ${layout.size}`}>
      {rows.map((row) => (
        <div class="node-row">
          <span class="gutter">{row[0]?.first_rank}</span>
          {row.map((span) => (
            <Cells key={span.node} first={span.first_rank} letters={letters(span)} size={layout.size} active={active >= span.first_rank && active < span.first_rank + span.workers ? active : -1} />
          ))}
        </div>
      ))}
    </div>
  );
}

export function Legend({ counts, on_pick }: { counts: Record<ShownState, number>; on_pick: (state: ShownState) => void }) {
  return (
    <p class="legend">
      {kStates.filter((state) => counts[state] > 0).map((state) => (
        <button type="button" class="quiet" onClick={() => on_pick(state)} title={`to the next that is ${kStateWords[state]}`}>
          <i class={`c ${state}`} aria-hidden="true" /> {counts[state].toLocaleString("en")} {kStateWords[state]}
        </button>
      ))}
    </p>
  );
}

export function RankGrid(props: GridProps) {
  const { attempt, ranks, samples } = props;
  const { element, width } = useWidth();
  const box = useRef<HTMLDivElement>(null);
  const option = useId();
  const spans = attempt.nodes;
  const layout = useMemo(() => choose_layout(spans, width - 44), [spans, width]);
  const [active, set_active] = useState<number | null>(null);
  const [focused, set_focused] = useState(false);
  const [tip, set_tip] = useState<TipPlace | null>(null);
  const last = spans.reduce((most, span) => Math.max(most, span.first_rank + span.workers), 0) - 1;
  const at = Math.min(active ?? spans[0]?.first_rank ?? 0, last);

  const open = (rank: number) => navigate(logs_route({ attempt: attempt.attempt, ranks: rank }));
  const letters = (span: NodeSpan) => state_letters(ranks, span.first_rank, span.workers, attempt.state);
  const describe = (rank: number) => {
    const row = ranks.get(rank);
    const state = shown_state(row?.state, attempt.state);
    return { host: spans[node_index_of(spans, rank)]?.host ?? "", facts: rank_facts(row, state, props.current ? samples.get(rank) : undefined, server_now_us()) };
  };
  const show_tip = (rank: number) => {
    const cell = box.current?.querySelector(`[data-rank="${rank}"]`)?.getBoundingClientRect();
    if (cell) set_tip({ rank, x: cell.left + cell.width / 2, top: cell.top, bottom: cell.bottom });
  };
  const go = (rank: number) => {
    set_active(rank);
    box.current?.querySelector(`[data-rank="${rank}"]`)?.scrollIntoView({ block: "nearest" });
    show_tip(rank);
  };
  const next_of = (state: ShownState) => {
    const all = spans.map(letters).join("");
    const first = spans[0]?.first_rank ?? 0;
    const letter = kStateLetters[state];
    let found = all.indexOf(letter, at - first + (active === null ? 0 : 1));
    if (found < 0) found = all.indexOf(letter);
    if (found < 0) return;
    box.current?.focus();
    go(first + found);
  };
  const on_key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const target = move(event.key, at, spans, layout);
    if (target !== null) go(target);
    else if (event.key === "Enter") open(at);
    else if (event.key === "Escape" && tip) set_tip(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  useKeys("Ranks", [
    { keys: "r", label: "to the grid of ranks", run: () => box.current?.focus() },
    { keys: ["ArrowLeft", "ArrowRight"], label: "in the grid: previous, next rank", passive: true, run: () => {} },
    { keys: ["ArrowUp", "ArrowDown"], label: "in the grid: the node before, after", passive: true, run: () => {} },
    { keys: "Enter", label: "in the grid: open the rank's logs", passive: true, run: () => {} },
    { keys: "f", label: "next failed rank", run: () => next_of("failed") },
  ]);

  const said = describe(at);
  const shown = focused ? at : -1;
  const tipped = tip && describe(tip.rank);
  return (
    <div ref={element} class="rank-grid">
      <Legend counts={count_states(ranks, attempt)} on_pick={next_of} />
      <div
        ref={box}
        class={`grid-box ${layout.named ? "" : "scrolls"}`}
        role="listbox"
        tabIndex={0}
        aria-label="Ranks by node"
        aria-activedescendant={option}
        onKeyDown={on_key}
        onFocus={() => {
          set_focused(true);
          if (box.current?.matches(":focus-visible")) show_tip(at);
        }}
        onBlur={() => {
          set_focused(false);
          set_tip(null);
        }}
        onPointerOver={(event) => {
          const rank = rank_of(event.target);
          if (rank === null) set_tip(null);
          else show_tip(rank);
        }}
        onPointerLeave={() => set_tip(null)}
        onClick={(event) => {
          const rank = rank_of(event.target);
          if (rank !== null) open(rank);
        }}
      >
        <div id={option} class="hidden-text" role="option" aria-selected="true" aria-posinset={at + 1} aria-setsize={last + 1}>
          {facts_sentence(at, said.host, said.facts)}
        </div>
        <div aria-hidden="true">
          {width > 0 && (layout.named
            ? <NamedNodes {...props} layout={layout} active={shown} letters={letters} />
            : <CompactNodes attempt={attempt} layout={layout} active={shown} letters={letters} />)}
        </div>
      </div>
      {tip && tipped && <Tooltip place={tip} title={`rank ${tip.rank}`} host={tipped.host} facts={tipped.facts} />}
    </div>
  );
}
