// SPDX-License-Identifier: Apache-2.0
// Which logs are shown and where in them, as the page's address says it:
//   attempt=0 ranks=0-7,9 streams=stdout,stderr     the logs
//   offset=123 | line=4711 | time=UNIX_US | at=TIME_US.RANK.STREAM.OFFSET     a place; none: the end
//   level=error q=... regex=1 case=1                the filter and the search
import type { StreamName } from "../api";
import { parse_ranks, ranks_text } from "../format";
import { kLevelNames, type Level } from "./level";
import { type Line, stream_index } from "./lines";

export interface Logs {
  attempt: number;
  ranks: number[];
  streams: StreamName[];
}

export type Spot =
  | { kind: "end" }
  | { kind: "begin" }
  | { kind: "offset"; offset: number }
  | { kind: "line"; line: number }
  | { kind: "time"; time_us: number }
  | { kind: "at"; time_us: number; rank: number; stream: StreamName; offset: number };

export interface Query {
  text: string;
  regex: boolean;
  match_case: boolean;
}

// The server follows and merges so many logs at once.
export const kMaxLogs = 512;
const kStreams: StreamName[] = ["stdout", "stderr"];

export function parse_logs(params: URLSearchParams, otherwise: Logs): Logs {
  const attempt = whole(params.get("attempt"));
  const ranks = parse_ranks(params.get("ranks") ?? params.get("rank") ?? "", kMaxLogs);
  const named = (params.get("streams") ?? params.get("stream") ?? "").split(",");
  const streams = kStreams.filter((stream) => named.includes(stream));
  return {
    attempt: attempt ?? otherwise.attempt,
    ranks: ranks.length ? ranks : otherwise.ranks,
    streams: streams.length ? streams : otherwise.streams,
  };
}

export function parse_spot(params: URLSearchParams): Spot {
  const offset = whole(params.get("offset"));
  if (offset !== null) return { kind: "offset", offset };
  const line = whole(params.get("line"));
  if (line !== null) return { kind: "line", line };
  const time_us = whole(params.get("time"));
  if (time_us !== null) return { kind: "time", time_us };
  const found = /^(\d+)\.(\d+)\.([01])\.(\d+)$/.exec(params.get("at") ?? "");
  if (!found) return { kind: "end" };
  const [time, rank, stream, place] = found.slice(1).map(Number) as [number, number, number, number];
  return { kind: "at", time_us: time, rank, stream: kStreams[stream]!, offset: place };
}

export function parse_query(params: URLSearchParams): Query {
  return {
    text: params.get("q") ?? "",
    regex: params.get("regex") === "1",
    match_case: params.get("case") === "1",
  };
}

export function parse_level(params: URLSearchParams): Level {
  return Math.max(0, kLevelNames.indexOf(params.get("level") as (typeof kLevelNames)[number])) as Level;
}

// The address of a line: short for one log, with its whole place among several.
export function place_params(logs: Logs, line: Line | null): URLSearchParams {
  const params = new URLSearchParams({
    attempt: String(logs.attempt),
    ranks: ranks_text(logs.ranks),
    streams: logs.streams.join(","),
  });
  if (line && is_single(logs)) params.set("offset", String(line.offset));
  else if (line) {
    params.set("at", `${line.time_us}.${line.rank}.${stream_index(line.stream)}.${line.offset}`);
  }
  return params;
}

export function is_single(logs: Logs): boolean {
  return logs.ranks.length === 1 && logs.streams.length === 1;
}

export function same_logs(a: Logs, b: Logs): boolean {
  return (
    a.attempt === b.attempt && a.ranks.join() === b.ranks.join() && a.streams.join() === b.streams.join()
  );
}

function whole(text: string | null): number | null {
  return text !== null && /^\d{1,16}$/.test(text) ? Number(text) : null;
}
