// SPDX-License-Identifier: Apache-2.0
// Lines that several ranks print alike are shown once, as "0-7". The lines of each rank keep their
// order, and what differs is never hidden: a line joins an earlier one only if its own rank has shown
// nothing behind that one.
import type { Line } from "./lines";

const kTogether_us = 2_000_000;
const kNear = 512; // rows

// The rows to show of `lines`; those that stand for others have them in `folded`.
export function fold(lines: readonly Line[]): Line[] {
  const rows: Line[] = [];
  const latest = new Map<string, number>(); // text: its newest row
  const last_row = new Map<number, number>(); // rank: its newest row
  for (const line of lines) {
    line.folded = null;
    if (line.notice) {
      latest.clear();
      rows.push(line);
      continue;
    }
    const at = line.text === "" ? undefined : latest.get(line.text);
    if (at !== undefined && joins(rows, at, line, last_row)) {
      const head = rows[at]!;
      (head.folded ??= []).push(line);
      last_row.set(line.rank, at);
      continue;
    }
    latest.set(line.text, rows.length);
    last_row.set(line.rank, rows.length);
    rows.push(line);
  }
  return rows;
}

function joins(rows: Line[], at: number, line: Line, last_row: Map<number, number>): boolean {
  const head = rows[at]!;
  return (
    rows.length - at <= kNear &&
    head.stream === line.stream &&
    head.ended === line.ended &&
    head.size === line.size &&
    Math.abs(line.time_us - head.time_us) <= kTogether_us &&
    (last_row.get(line.rank) ?? -1) < at
  );
}

export function unfold(lines: readonly Line[]): readonly Line[] {
  for (const line of lines) line.folded = null;
  return lines;
}
