// SPDX-License-Identifier: Apache-2.0
// Only the lines of a level or above, found by the server in logs of any size. One log is searched
// from where the reader is, so that the end of a large one shows at once; of several logs all that
// was found is taken together, up to a limit, and put in order.
import { api_url, get_json, type Page } from "../api";
import { kErrorBlock } from "./errors";
import { type Level, level_pattern } from "./level";
import { compare, level, type Line, line_end } from "./lines";
import { is_single, type Logs, type Query, type Spot } from "./place";
import { run_search, type SearchScope } from "./search";
import type { Chunk, Source } from "./source";

// Searching backwards goes in windows that grow until something is found.
const kFirstWindow = 8 << 20;
const kLastWindow = 256 << 20;
const kNear = 50;
export const kMaxFound = 10_000;

export class FilterSource implements Source {
  private readonly query: Query;
  private all: Promise<Chunk> | null = null;

  constructor(
    private readonly logs: Logs,
    private readonly at_least: Level,
    private readonly on_progress: (share: number) => void,
  ) {
    this.query = { text: level_pattern(at_least), regex: true, match_case: true };
  }

  async load(spot: Spot, count: number, signal: AbortSignal): Promise<Chunk> {
    if (!is_single(this.logs)) return this.load_all(signal);
    if (spot.kind === "offset" || spot.kind === "at") return this.forward(spot.offset, count, signal);
    if (spot.kind === "begin") return this.forward(0, count, signal);
    const offset = await this.offset_of(spot, signal);
    const forward = spot.kind === "end" ? null : await this.forward(offset, count, signal);
    return forward?.lines.length ? forward : this.backward(offset, count, signal);
  }

  async before(first: Line, count: number, signal: AbortSignal): Promise<Chunk> {
    if (!is_single(this.logs)) return nothing();
    return this.backward(first.offset, count, signal);
  }

  async after(last: Line, count: number, signal: AbortSignal): Promise<Chunk> {
    if (!is_single(this.logs)) return nothing();
    return this.forward(line_end(last), count, signal);
  }

  // The nearest line behind `edge`, or the first one of the nearest block before it.
  async beyond(edge: Line, direction: 1 | -1, signal: AbortSignal): Promise<Line | null> {
    const single = is_single(this.logs);
    if (direction > 0) {
      const { lines } = single ? await this.after(edge, kNear, signal) : await this.load_all(signal);
      return lines.find((line) => single || compare(line, edge) > 0) ?? null;
    }
    const { lines } = single ? await this.before(edge, kNear, signal) : await this.load_all(signal);
    let at = lines.findLastIndex((line) => single || compare(line, edge) < 0);
    while (at > 0 && belong_together(lines[at - 1]!, lines[at]!)) --at;
    return lines[at] ?? null;
  }

  // The end, a line or a time as an offset.
  private async offset_of(spot: Spot, signal: AbortSignal): Promise<number> {
    const { attempt, ranks, streams } = this.logs;
    const where: Record<string, number> =
      spot.kind === "line"
        ? { line: spot.line, lines: 1 }
        : spot.kind === "time"
          ? { time: spot.time_us, lines: 1 }
          : { tail: 1 };
    const page = await get_json<Page>(
      api_url(`/api/v1/logs/${attempt}/${ranks[0]}/${streams[0]}`, where),
      signal,
    );
    return spot.kind === "end" ? page.size : page.offset;
  }

  private async forward(from: number, count: number, signal: AbortSignal): Promise<Chunk> {
    const { lines, truncated } = await this.search({ from, limit: count }, signal);
    return { lines, at_begin: from === 0, at_end: !truncated, facts: {} };
  }

  private async backward(to: number, count: number, signal: AbortSignal): Promise<Chunk> {
    let lines: Line[] = [];
    let begin = to;
    for (
      let size = kFirstWindow;
      begin > 0 && lines.length < count;
      size = Math.min(size * 4, kLastWindow)
    ) {
      const from = Math.max(0, begin - size);
      const found = await this.search({ from, to: begin, limit: kMaxFound }, signal);
      if (found.truncated) {
        // Too many to be sure of the last ones: a smaller window has them all.
        if (size <= 1 << 16) {
          lines = found.lines.concat(lines);
          begin = from;
        } else size = Math.max(size / 64, 1 << 14);
        continue;
      }
      lines = found.lines.concat(lines);
      begin = from;
    }
    return { lines, at_begin: begin === 0, at_end: true, facts: {} };
  }

  private load_all(signal: AbortSignal): Promise<Chunk> {
    const load = async (): Promise<Chunk> => {
      const { lines } = await this.search({ limit: kMaxFound }, signal);
      return { lines: lines.sort(compare), at_begin: true, at_end: true, facts: {} };
    };
    this.all ??= load().catch((error: unknown) => {
      this.all = null;
      throw error;
    });
    return this.all.then((chunk) => ({ ...chunk, lines: [...chunk.lines] }));
  }

  private async search(
    scope: SearchScope,
    signal: AbortSignal,
  ): Promise<{ lines: Line[]; truncated: boolean }> {
    const { attempt, ranks, streams } = this.logs;
    const lines: Line[] = [];
    const end = await run_search(
      this.query,
      { attempt, ranks, streams, ...scope },
      ({ line }) => {
        line.hits = null;
        if (level(line) >= this.at_least) lines.push(line);
      },
      ({ bytes, total_bytes }) => this.on_progress(total_bytes > 0 ? bytes / total_bytes : 0),
      signal,
    );
    return { lines, truncated: end.truncated };
  }
}

// Lines of one traceback, of which some look like nothing.
function belong_together(a: Line, b: Line): boolean {
  if (a.rank !== b.rank || a.stream !== b.stream) return false;
  return a.number >= 0 && b.number >= 0 ? b.number - a.number <= kErrorBlock : b.offset - a.offset < 400;
}

function nothing(): Chunk {
  return { lines: [], at_begin: true, at_end: true, facts: {} };
}
