// SPDX-License-Identifier: Apache-2.0
// All ranks by node, one cell each. For the keyboard and screen readers the grid is a list box of
// which only the active option exists: 4,096 of them would help nobody.
import { useId, useMemo, useRef, useState } from "preact/hooks";
import type { NodeSpan } from "../api";
import { useKeys } from "../keyboard";
import { server_now_us } from "../live";
import { logs_route, navigate } from "../router";
import {
  count_states,
  kStateLetters,
  kStates,
  kStateWords,
  shown_state,
  state_letters,
  type ShownState,
} from "../states";
import { useWidth } from "../width";
import { choose_layout, move, node_index_of, type Layout } from "./grid_layout";
import { CompactNodes, NamedNodes, type GridProps } from "./rank_cells";
import { facts_sentence, rank_facts } from "./rank_facts";
import { Tooltip, type TipPlace } from "./tooltip";

const kGutter = 44; // beside the rows of many nodes

export function Legend({
  counts,
  on_pick,
}: {
  counts: Record<ShownState, number>;
  on_pick: (state: ShownState) => void;
}) {
  return (
    <p class="legend">
      {kStates
        .filter((state) => counts[state] > 0)
        .map((state) => (
          <button
            type="button"
            class="quiet"
            onClick={() => on_pick(state)}
            title={`to the next that is ${kStateWords[state]}`}
          >
            <i class={`c ${state}`} aria-hidden="true" /> {counts[state].toLocaleString("en")}{" "}
            {kStateWords[state]}
          </button>
        ))}
    </p>
  );
}

function rank_of(target: EventTarget | null): number | null {
  const cell = target instanceof Element ? target.closest<HTMLElement>("[data-rank]") : null;
  return cell ? Number(cell.dataset["rank"]) : null;
}

// What is said of a rank, by sight and by voice.
function describe({ attempt, ranks, samples, current, suspects }: GridProps, rank: number) {
  const row = ranks.get(rank);
  const state = shown_state(row, attempt.state, suspects);
  return {
    host: attempt.nodes[node_index_of(attempt.nodes, rank)]?.host ?? "",
    facts: rank_facts(row, state, current ? samples.get(rank) : undefined, server_now_us()),
  };
}

// Which rank the keyboard is at, and whether and where something is said of one.
function useCursor({ attempt, ranks, suspects }: GridProps, layout: Layout) {
  const box = useRef<HTMLDivElement>(null);
  const [active, set_active] = useState<number | null>(null);
  const [tip, set_tip] = useState<TipPlace | null>(null);
  const spans = attempt.nodes;
  const first = spans[0]?.first_rank ?? 0;
  const end = spans.reduce((most, span) => Math.max(most, span.first_rank + span.workers), 0);
  const at = Math.min(active ?? first, end - 1);

  const cell_of = (rank: number) => box.current?.querySelector(`[data-rank="${rank}"]`);
  const show_tip = (rank: number) => {
    const cell = cell_of(rank)?.getBoundingClientRect();
    if (cell) set_tip({ rank, x: cell.left + cell.width / 2, top: cell.top, bottom: cell.bottom });
  };
  const go = (rank: number) => {
    set_active(rank);
    cell_of(rank)?.scrollIntoView({ block: "nearest" });
    show_tip(rank);
  };
  const open = (rank: number) => navigate(logs_route({ attempt: attempt.attempt, ranks: rank }));
  const letters = (span: NodeSpan) =>
    state_letters(ranks, span.first_rank, span.workers, attempt.state, suspects);
  const next_of = (state: ShownState): boolean => {
    const all = spans.map(letters).join("");
    const letter = kStateLetters[state];
    let found = all.indexOf(letter, at - first + (active === null ? 0 : 1));
    if (found < 0) found = all.indexOf(letter);
    if (found < 0) return false;
    box.current?.focus();
    go(first + found);
    return true;
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
  return { box, at, end, tip, set_tip, show_tip, open, letters, next_of, on_key };
}

type Cursor = ReturnType<typeof useCursor>;

function useGridKeys({ box, next_of }: Cursor): void {
  const passive = { passive: true, run: () => {} };
  useKeys("Ranks", [
    { keys: "r", label: "to the grid of ranks", run: () => box.current?.focus() },
    { keys: ["ArrowLeft", "ArrowRight"], label: "in the grid: previous, next rank", ...passive },
    { keys: ["ArrowUp", "ArrowDown"], label: "in the grid: the node before, after", ...passive },
    { keys: "Enter", label: "in the grid: open the rank's logs", ...passive },
    {
      keys: "f",
      label: "next failed rank, or what a stalled job hangs on",
      run: () => void (next_of("failed") || next_of("suspect")),
    },
  ]);
}

// What the pointer and the focus do to the grid as a whole.
function listeners(cursor: Cursor, set_focused: (focused: boolean) => void) {
  const { box, at, set_tip, show_tip, open, on_key } = cursor;
  return {
    onKeyDown: on_key,
    onFocus: () => {
      set_focused(true);
      if (box.current?.matches(":focus-visible")) show_tip(at);
    },
    onBlur: () => {
      set_focused(false);
      set_tip(null);
    },
    onPointerOver: (event: PointerEvent) => {
      const rank = rank_of(event.target);
      if (rank === null) set_tip(null);
      else show_tip(rank);
    },
    onPointerLeave: () => set_tip(null),
    onClick: (event: MouseEvent) => {
      const rank = rank_of(event.target);
      if (rank !== null) open(rank);
    },
  };
}

export function RankGrid(props: GridProps) {
  const { attempt, ranks, suspects } = props;
  const { element, width } = useWidth();
  const layout = useMemo(
    () => choose_layout(attempt.nodes, width - kGutter),
    [attempt.nodes, width],
  );
  const cursor = useCursor(props, layout);
  const { at, end, tip, letters } = cursor;
  const [focused, set_focused] = useState(false);
  const option = useId();
  useGridKeys(cursor);
  const said = describe(props, at);
  const Nodes = layout.named ? NamedNodes : CompactNodes;
  return (
    <div ref={element} class="rank-grid">
      <Legend counts={count_states(ranks, attempt, suspects)} on_pick={cursor.next_of} />
      <div
        ref={cursor.box}
        class={`grid-box ${layout.named ? "" : "scrolls"}`}
        role="listbox"
        tabIndex={0}
        aria-label="Ranks by node"
        aria-activedescendant={option}
        {...listeners(cursor, set_focused)}
      >
        <div
          id={option}
          class="hidden-text"
          role="option"
          aria-selected="true"
          aria-posinset={at + 1}
          aria-setsize={end}
        >
          {facts_sentence(at, said.host, said.facts)}
        </div>
        <div aria-hidden="true">
          {width > 0 && (
            <Nodes {...props} layout={layout} active={focused ? at : -1} letters={letters} />
          )}
        </div>
      </div>
      {tip && <Tooltip place={tip} title={`rank ${tip.rank}`} {...describe(props, tip.rank)} />}
    </div>
  );
}
