// SPDX-License-Identifier: Apache-2.0
// Where lines come from, page by page: one log by offsets, or several in the order of their times.
import { ApiError, api_url, get_json, type Merged, type Page } from "../api";
import { ranks_text } from "../format";
import {
  compare,
  type Line,
  line_end,
  line_of_merged,
  lines_of_page,
  make_notice,
  stream_index,
} from "./lines";
import { is_single, type Logs, type Spot } from "./place";

export interface Chunk {
  lines: Line[];
  at_begin: boolean; // nothing before it
  at_end: boolean; // nothing behind it yet
  facts: Facts;
}

// What an answer says of the logs as a whole; what it does not say is missing.
export interface Facts {
  exists?: boolean;
  growing?: boolean;
  size?: number;
  total_lines?: number;
  untimed?: number[];
  unreachable?: string[];
}

export interface Source {
  load(spot: Spot, count: number, signal: AbortSignal): Promise<Chunk>;
  before(first: Line, count: number, signal: AbortSignal): Promise<Chunk>;
  after(last: Line, count: number, signal: AbortSignal): Promise<Chunk>;
}

export function open_source(logs: Logs): Source {
  return is_single(logs) ? new SingleSource(logs) : new MergedSource(logs);
}

export class SingleSource implements Source {
  private readonly path: string;

  constructor(readonly logs: Logs) {
    this.path = `/api/v1/logs/${logs.attempt}/${logs.ranks[0]}/${logs.streams[0]}`;
  }

  async load(spot: Spot, count: number, signal: AbortSignal): Promise<Chunk> {
    if (spot.kind === "end") return this.backward({ tail: count }, count, signal);
    return this.forward(this.place_of(spot), count, signal);
  }

  before(first: Line, count: number, signal: AbortSignal): Promise<Chunk> {
    return this.backward({ before: first.offset, lines: count }, count, signal);
  }

  after(last: Line, count: number, signal: AbortSignal): Promise<Chunk> {
    return this.forward({ offset: line_end(last) }, count, signal);
  }

  private place_of(spot: Spot): Record<string, number> {
    if (spot.kind === "line") return { line: Math.max(0, spot.line) };
    if (spot.kind === "time") return { time: spot.time_us };
    if (spot.kind === "offset" || spot.kind === "at") return { offset: spot.offset };
    return { offset: 0 };
  }

  private async forward(
    where: Record<string, number>,
    count: number,
    signal: AbortSignal,
  ): Promise<Chunk> {
    const page = await get_json<Page>(api_url(this.path, { ...where, lines: count }), signal);
    const last = page.lines.at(-1);
    return this.chunk(page, page.offset === 0, page.end >= page.size || (last ? !last[4] : true));
  }

  private async backward(
    where: Record<string, number>,
    count: number,
    signal: AbortSignal,
  ): Promise<Chunk> {
    const page = await get_json<Page>(api_url(this.path, where), signal);
    const begins = page.lines.length === 0 || (page.offset === 0 && page.lines.length <= count);
    return this.chunk(page, begins, where["tail"] !== undefined);
  }

  private chunk(page: Page, at_begin: boolean, at_end: boolean): Chunk {
    const { exists, growing, size, total_lines } = page;
    const lines = with_hole(lines_of_page(page), page.hole);
    return { lines, at_begin, at_end, facts: { exists, growing, size, total_lines } };
  }
}

// A bounded log's hole is told where it is.
function with_hole(lines: Line[], hole: readonly [number, number] | null | undefined): Line[] {
  const [begin, end] = hole ?? [0, 0];
  if (end <= begin) return lines;
  const at = lines.findIndex((line) => line.offset === end);
  if (at < 0) return lines;
  const notice = make_notice(lines[at]!, { kind: "hole", bytes: end - begin, lines: -1 });
  return [...lines.slice(0, at), notice, ...lines.slice(at)];
}

export class MergedSource implements Source {
  constructor(readonly logs: Logs) {}

  load(spot: Spot, count: number, signal: AbortSignal): Promise<Chunk> {
    if (spot.kind === "end") return this.ask({ tail: count }, count, signal);
    if (spot.kind === "begin") return this.ask({ time: 0 }, count, signal);
    if (spot.kind === "time") return this.ask({ time: spot.time_us }, count, signal);
    if (spot.kind === "at") {
      // Behind the place just before it, so that the line itself is among them.
      const where = `${spot.time_us}.${spot.rank}.${stream_index(spot.stream)}.${spot.offset - 1}`;
      return this.ask({ cursor: `after:${where}` }, count, signal);
    }
    throw new ApiError(400, "several logs have no common line numbers or offsets");
  }

  before(first: Line, count: number, signal: AbortSignal): Promise<Chunk> {
    return this.ask({ cursor: `before:${this.cursor(first)}` }, count, signal);
  }

  after(last: Line, count: number, signal: AbortSignal): Promise<Chunk> {
    return this.ask({ cursor: `after:${this.cursor(last)}` }, count, signal);
  }

  private cursor(line: Line): string {
    return `${line.time_us}.${line.rank}.${stream_index(line.stream)}.${line.offset}`;
  }

  private async ask(
    where: Record<string, string | number>,
    count: number,
    signal: AbortSignal,
  ): Promise<Chunk> {
    const { attempt, ranks, streams } = this.logs;
    const query = {
      attempt,
      ranks: ranks_text(ranks),
      streams: streams.join(","),
      ...where,
      lines: count,
    };
    const answer = await get_json<Merged>(api_url("/api/v1/merged", query), signal);
    const lines = answer.lines.map((row) => line_of_merged(attempt, row)).sort(compare);
    const { at_begin, at_end, untimed, unreachable } = answer;
    return { lines, at_begin, at_end, facts: { untimed, unreachable, exists: lines.length > 0 } };
  }
}
