// SPDX-License-Identifier: Apache-2.0
import { compare, type Line, line_key } from "./lines";

// Which row shows a line.
export class RowIndex {
  private readonly places = new Map<Line, number>();

  constructor(readonly rows: readonly Line[]) {
    for (let i = 0; i < rows.length; ++i) this.places.set(rows[i]!, i);
  }

  // Of a line that is itself a row.
  place(line: Line): number | undefined {
    return this.places.get(line);
  }

  // Also if it was loaded anew since, or is folded into another; otherwise the nearest one after it.
  find(line: Line): number {
    const at = this.places.get(line);
    if (at !== undefined) return at;
    const key = line_key(line);
    const same = this.rows.findIndex((row) => shows(row, key));
    if (same >= 0) return same;
    const after = this.rows.findIndex((row) => compare(row, line) >= 0);
    return after < 0 ? this.rows.length - 1 : after;
  }
}

export function shows(row: Line, key: string): boolean {
  if (row.notice) return false;
  return line_key(row) === key || (row.folded?.some((other) => line_key(other) === key) ?? false);
}
