// SPDX-License-Identifier: Apache-2.0
import { api_url, get_json, type Page } from "../api";
import { bytes_left, kMaxMore, type Line } from "./lines";

const kFirstMore = 64 << 10;

// More of a long line: first what is here, then ever larger pieces, up to what the server gives.
export async function load_more_of(line: Line): Promise<void> {
  const here = line.text.length + line.more.length;
  if (line.shown < here) line.shown = here;
  else if (bytes_left(line) > 0 && here < kMaxMore) {
    const path = `/api/v1/logs/${line.attempt}/${line.rank}/${line.stream}`;
    const max_line = Math.min(kMaxMore, Math.max(kFirstMore, here * 4));
    const page = await get_json<Page>(api_url(path, { offset: line.offset, lines: 1, max_line }));
    const text = page.lines[0]?.[0] === line.offset ? page.lines[0][5] : "";
    if (text.startsWith(line.text)) line.more = text.slice(line.text.length);
    line.shown = Math.max(line.shown, text.length);
  }
}
