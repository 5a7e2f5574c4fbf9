// SPDX-License-Identifier: Apache-2.0
// A search on the server: what it found comes while it goes on, and it ends when it is told to.
import { api_url, read_json_lines, type SearchMessage } from "../api";
import { ranks_text } from "../format";
import { compare, type Line, line_key, make_line } from "./lines";
import type { Query } from "./place";

export interface SearchScope {
  attempt?: number; // all by default
  ranks?: readonly number[];
  streams?: readonly string[];
  from?: number; // offsets, in a single log
  to?: number;
  context?: number;
  limit: number;
}

export interface Found {
  line: Line;
  before: Line[];
  after: Line[];
}

export interface Progress {
  bytes: number;
  total_bytes: number;
}

export interface SearchEnd {
  hits: number;
  truncated: boolean;
  bytes: number;
  unreachable?: string[]; // hosts whose logs were not searched
  troubles?: string[]; // logs that could not be read
}

// Calls `on_found` for each line as it comes.
export async function run_search(
  query: Query,
  scope: SearchScope,
  on_found: (found: Found) => void,
  on_progress: (progress: Progress) => void,
  signal: AbortSignal,
): Promise<SearchEnd> {
  let end: SearchEnd = { hits: 0, truncated: true, bytes: 0 };
  const url = api_url("/api/v1/search", {
    q: query.text,
    regex: query.regex ? 1 : undefined,
    case: query.match_case ? 1 : undefined,
    attempt: scope.attempt,
    ranks: scope.ranks && ranks_text(scope.ranks),
    streams: scope.streams?.join(","),
    from: scope.from,
    to: scope.to,
    context: scope.context ?? 0,
    limit: scope.limit,
  });
  await read_json_lines<SearchMessage>(
    url,
    (message) => {
      if (signal.aborted) return;
      if (message.hit) on_found(found_of(message.hit));
      else if (message.progress) on_progress(message.progress);
      else if (message.done) end = message.done;
    },
    signal,
  );
  return end;
}

function found_of(hit: NonNullable<SearchMessage["hit"]>): Found {
  const line = make_line(hit, [
    hit.offset,
    hit.number,
    hit.time_us,
    hit.size,
    hit.ended,
    hit.text,
    hit.skipped,
  ]);
  line.hits = hit.matches;
  const near = (rows: typeof hit.before) =>
    rows.map((row) => {
      const other = make_line(hit, row);
      other.context = true;
      return other;
    });
  return { line, before: near(hit.before), after: near(hit.after) };
}

// Lines that were found, each once, in the order of one log's places or of all logs' times.
export class HitList {
  private sorted: Line[] = [];
  private keys = new Map<string, Line>();
  private dirty = false;

  constructor(private readonly single: boolean) {}

  add(line: Line): void {
    const key = line_key(line);
    if (this.keys.has(key)) return;
    this.keys.set(key, line);
    this.sorted.push(line);
    this.dirty = true;
  }

  get count(): number {
    return this.sorted.length;
  }

  lines(): readonly Line[] {
    if (this.dirty) this.sorted.sort((a, b) => this.order(a, b));
    this.dirty = false;
    return this.sorted;
  }

  matches(line: Line): Line["hits"] {
    return this.keys.get(line_key(line))?.hits ?? null;
  }

  // The one next to `from` in a direction: its place in the list, -1 if there is none.
  next(from: Line | null, direction: 1 | -1, including: boolean): number {
    const lines = this.lines();
    if (lines.length === 0) return -1;
    if (!from) return direction > 0 ? 0 : lines.length - 1;
    let low = 0;
    let high = lines.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.order(lines[middle]!, from) < 0) low = middle + 1;
      else high = middle;
    }
    const same = low < lines.length && this.order(lines[low]!, from) === 0;
    if (same && including) return low;
    const at = direction > 0 ? low + Number(same) : low - 1;
    return at < lines.length ? at : -1;
  }

  private order(a: Line, b: Line): number {
    return this.single ? a.offset - b.offset : compare(a, b);
  }
}
