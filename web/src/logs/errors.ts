// SPDX-License-Identifier: Apache-2.0
import { Level } from "./level";
import { level, type Line } from "./lines";

export const kErrorBlock = 3; // lines without an error that do not end a traceback

// From row `at` to the next block of error lines: the row where it begins, -1 if there is none. The
// lines of one traceback count as one.
export function error_block(rows: readonly Line[], at: number, direction: 1 | -1): number {
  const bad = (i: number) => rows[i] !== undefined && level(rows[i]) === Level.kError;
  const near = (i: number, step: number) => {
    for (let k = 1; k <= kErrorBlock; ++k) if (bad(i + step * k)) return i + step * k;
    return -1;
  };
  let i = at;
  // Out of the block in which we are.
  if (bad(i)) {
    for (let next = near(i, direction); next >= 0; next = near(i, direction)) i = next;
  }
  for (i += direction; i >= 0 && i < rows.length; i += direction) {
    if (!bad(i)) continue;
    if (direction < 0) for (let next = near(i, -1); next >= 0; next = near(i, -1)) i = next;
    return i;
  }
  return -1;
}
