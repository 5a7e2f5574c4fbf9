// SPDX-License-Identifier: Apache-2.0
// The ranks as a table: those that need attention first, or in the order of any column.
import { useMemo, useState } from "preact/hooks";
import type { Attempt, Rank, Sample } from "../api";
import { bytes_text, number_text } from "../format";
import { now_us } from "../now";
import { href, logs_route } from "../router";
import { kStateMarks, kStates, kStateWords, runs, shown_state, type ShownState } from "../states";
import { age_text, end_text, output_age_s, progress_of, step_text } from "./rank_facts";

const kRowsAtFirst = 16;
const kTroubled = new Set<ShownState>(["failed", "lost", "suspect"]);
const kMoreRows = 100;

interface Row {
  rank: Rank;
  state: ShownState;
  sample: Sample | undefined;
}

interface Column {
  title: string;
  key: (row: Row) => number | string | null; // what it is sorted by; null last
  down: boolean; // the largest first
  number: boolean;
}

const kColumns: Column[] = [
  { title: "rank", key: ({ rank }) => rank.rank, down: false, number: true },
  { title: "host", key: ({ rank }) => rank.host, down: false, number: false },
  { title: "state", key: ({ state }) => kStates.indexOf(state), down: false, number: false },
  { title: "pid", key: ({ rank }) => rank.pid ?? null, down: false, number: true },
  { title: "step", key: ({ sample }) => sample?.step ?? null, down: false, number: true },
  { title: "loss", key: ({ sample }) => sample?.loss ?? null, down: true, number: true },
  { title: "CPU", key: ({ sample }) => sample?.cpu ?? null, down: true, number: true },
  {
    title: "memory",
    key: ({ rank, sample }) => sample?.rss_bytes ?? rank.max_rss_bytes ?? null,
    down: true,
    number: true,
  },
  { title: "GPU", key: ({ sample }) => sample?.gpu ?? null, down: true, number: true },
  {
    title: "last output",
    key: ({ sample }) => (sample?.last_output_us ? sample.last_output_us : null),
    down: false,
    number: true,
  },
];

function compare(a: number | string | null, b: number | string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -1 : Number(a > b);
}

function sort_rows(rows: Row[], column: Column, reversed: boolean): Row[] {
  const sign = column.down !== reversed ? -1 : 1;
  return rows.sort((a, b) => {
    const [one, other] = [column.key(a), column.key(b)];
    if (one === null || other === null) return compare(one, other) || a.rank.rank - b.rank.rank;
    return sign * compare(one, other) || a.rank.rank - b.rank.rank;
  });
}

const text_of = (value: number | null | undefined, format: (value: number) => string): string =>
  value == null || value < 0 ? "" : format(value);

function TableRow({ row, now, columns }: { row: Row; now: number; columns: readonly Column[] }) {
  const { rank, state, sample } = row;
  const part = progress_of(sample);
  const age = runs(state) ? output_age_s(sample, now) : null;
  const cells: Record<string, preact.ComponentChildren> = {
    rank: (
      <a
        href={href(logs_route({ attempt: rank.attempt, ranks: rank.rank }))}
        aria-label={`logs of rank ${rank.rank}`}
      >
        {rank.rank}
      </a>
    ),
    host: (
      <span class="foreign host" title={rank.host}>
        {rank.host}
      </span>
    ),
    state: (
      <>
        <span class={`state-word ${state}`}>
          <span aria-hidden="true">{kStateMarks[state]}</span> {kStateWords[state]}
        </span>
        {!runs(state) && state !== "exited" && <span class="muted"> {end_text(rank)}</span>}
      </>
    ),
    pid: rank.pid || "",
    step: (
      <>
        {step_text(sample)}
        {part !== null && (
          <span class="mini-bar" aria-hidden="true">
            <b style={{ width: `${part * 100}%` }} />
          </span>
        )}
      </>
    ),
    loss: sample?.loss == null ? "" : number_text(sample.loss),
    CPU: text_of(sample?.cpu, number_text),
    memory: text_of(sample?.rss_bytes ?? rank.max_rss_bytes, bytes_text),
    GPU: text_of(sample?.gpu, (value) => `${Math.round(value * 100)} %`),
    "last output": age === null ? "" : age_text(age),
  };
  return (
    <tr class={state}>
      {columns.map((column) => (
        <td class={column.number ? "number" : ""}>{cells[column.title]}</td>
      ))}
    </tr>
  );
}

function Heading({
  column,
  sorted,
  reversed,
  on_sort,
}: {
  column: Column;
  sorted: boolean;
  reversed: boolean;
  on_sort: () => void;
}) {
  const descending = column.down !== reversed;
  return (
    <th
      scope="col"
      class={column.number ? "number" : ""}
      aria-sort={sorted ? (descending ? "descending" : "ascending") : undefined}
    >
      <button type="button" class="quiet" onClick={on_sort}>
        {column.title}
        <span aria-hidden="true" class="arrow">
          {sorted ? (descending ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
}

interface TableProps {
  attempt: Attempt;
  ranks: ReadonlyMap<number, Rank>;
  samples: ReadonlyMap<number, Sample>;
  suspects: ReadonlySet<number>;
}

interface Sorting {
  title: string;
  reversed: boolean;
}

// The rows in order, and the columns of which something is known.
function useRows({ attempt, ranks, samples, suspects }: TableProps, sorting: Sorting | null) {
  return useMemo(() => {
    const all = [...ranks.values()].map((rank) => ({
      rank,
      state: shown_state(rank, attempt.state, suspects),
      sample: samples.get(rank.rank),
    }));
    // Without a wish: failures first where there are some, else by rank.
    const troubled = all.some(({ state }) => kTroubled.has(state));
    const title = sorting?.title ?? (troubled ? "state" : "rank");
    const column = kColumns.find((one) => one.title === title);
    const rows = column ? sort_rows(all, column, sorting?.reversed ?? false) : all;
    const unknown = (value: number | string | null) => value === null || value === -1;
    const columns = kColumns.filter(({ key }) => !rows.every((row) => unknown(key(row))));
    return { rows, columns };
  }, [ranks, samples, suspects, sorting, attempt.state]);
}

export function RankTable(props: TableProps) {
  const [sorting, set_sorting] = useState<Sorting | null>(null);
  const [shown, set_shown] = useState(kRowsAtFirst);
  const { rows, columns } = useRows(props, sorting);
  const now = now_us();
  if (!rows.length) return null;
  const sort_by = (title: string) =>
    set_sorting({ title, reversed: sorting?.title === title && !sorting.reversed });
  return (
    <>
      <div class="table-box" role="region" aria-label="Ranks" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <Heading
                  column={column}
                  sorted={column.title === sorting?.title}
                  reversed={sorting?.reversed ?? false}
                  on_sort={() => sort_by(column.title)}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shown).map((row) => (
              <TableRow key={row.rank.rank} row={row} now={now} columns={columns} />
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown && (
        <p>
          <button type="button" onClick={() => set_shown(shown + kMoreRows)}>
            {Math.min(kMoreRows, rows.length - shown)} more
          </button>{" "}
          <span class="muted">
            {shown} of {rows.length.toLocaleString("en")} ranks
          </span>
        </p>
      )}
    </>
  );
}
