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

const kContinued = 8; // lines that one error can go on for

// How bad a row is. An indented line goes on with the one before it: the source of a traceback.
export function level_at(rows: readonly Line[], at: number): Level {
  let own = level(rows[at]!);
  for (let back = 0; back < kContinued && own === Level.kNone && at > 0; ++back) {
    if (!/^\s/.test(rows[at]!.text)) break;
    own = level(rows[--at]!);
  }
  return own;
}
