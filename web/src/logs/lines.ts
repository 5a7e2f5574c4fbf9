// SPDX-License-Identifier: Apache-2.0
// A line of a log as the page keeps it, where it comes from, and the one order that all lines of
// several logs have: by time, then rank, stream and place.
import type { MergedLine, Page, PageLine, StreamName } from "../api";
import type { Match } from "./ansi";
import { Level, level_of } from "./level";

export interface LogRef {
  attempt: number;
  rank: number;
  stream: StreamName;
}

export interface Line {
  readonly attempt: number;
  readonly rank: number;
  readonly stream: StreamName;
  readonly offset: number;
  readonly number: number; // from 0; -1: not counted
  readonly time_us: number; // 0: not known
  readonly size: number;
  readonly ended: boolean;
  readonly text: string; // at most 16 KiB of the line
  readonly skipped: number; // bytes of the line before `text`
  // Lines of other ranks that say the same and are not shown themselves.
  folded: Line[] | null;
  // What the reader asked to see of a long line: characters, and pieces behind `text`.
  shown: number;
  more: string;
  // Instead of a line: the server was ahead and left out this much, or a bounded log has a hole.
  notice: Notice | null;
  level: Level | -1; // -1: not guessed yet
  hits: readonly Match[] | null;
  separated: boolean; // something is left out before it, in a list of what was found
  context: boolean; // not found itself, but near
}

export interface Notice {
  kind: "skip" | "hole";
  bytes: number;
  lines: number; // -1: not known
}

// So much of a line is shown at first, and so much of it at most; the server gives no more at once.
export const kShownAtFirst = 4096;
export const kMaxMore = 1 << 20;

export function stream_index(stream: StreamName): number {
  return stream === "stderr" ? 1 : 0;
}

export function log_key(line: { rank: number; stream: StreamName }): string {
  return `${line.rank}.${stream_index(line.stream)}`;
}

export function line_key(line: { rank: number; stream: StreamName; offset: number }): string {
  return `${log_key(line)}.${line.offset}`;
}

export function make_line(log: LogRef, row: PageLine): Line {
  const [offset, number, time_us, size, ended, text, skipped] = row;
  return {
    attempt: log.attempt,
    rank: log.rank,
    stream: log.stream,
    offset,
    number,
    time_us,
    size,
    ended,
    text,
    skipped: skipped ?? 0,
    folded: null,
    shown: kShownAtFirst,
    more: "",
    notice: null,
    level: -1,
    hits: null,
    separated: false,
    context: false,
  };
}

export function lines_of_page(page: Page): Line[] {
  return page.lines.map((row) => make_line(page, row));
}

export function line_of_merged(attempt: number, row: MergedLine): Line {
  const [rank, stream, ...rest] = row;
  return make_line({ attempt, rank, stream }, rest);
}

export function make_notice(before: Line, notice: Notice): Line {
  const line = make_line(before, [before.offset, -1, before.time_us, 0, true, ""]);
  line.notice = notice;
  return line;
}

// Where the next line of its log begins.
export function line_end(line: Line): number {
  return line.offset + line.size + (line.ended ? 1 : 0);
}

export function compare(a: Line, b: Line): number {
  return (
    a.time_us - b.time_us ||
    a.rank - b.rank ||
    stream_index(a.stream) - stream_index(b.stream) ||
    a.offset - b.offset
  );
}

export function level(line: Line): Level {
  if (line.level < 0) line.level = line.notice ? Level.kNone : level_of(line.text);
  return line.level as Level;
}

// How many bytes of the line are not in `text` (and `more`).
export function bytes_left(line: Line): number {
  if (line.size <= line.text.length) return 0;
  return Math.max(0, line.size - line.skipped - utf8_size(line.text) - utf8_size(line.more));
}

export function utf8_size(text: string): number {
  let size = text.length;
  for (let i = 0; i < text.length; ++i) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) size += code >= 0x800 && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return size;
}
