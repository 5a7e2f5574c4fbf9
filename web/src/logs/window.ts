// SPDX-License-Identifier: Apache-2.0
// The part of the logs that the page holds: lines that follow each other, within a bound, extended
// at either end as the reader moves, and at the end by what is written now. A pure value holder;
// session.ts says when to load, viewport.ts draws it.
import type { Chunk } from "./source";
import { compare, type Line, line_key, log_key, make_notice } from "./lines";

// What a tab may hold. The text bound counts UTF-16 units, of which one takes up to two bytes.
export const kMaxLines = 12_000;
export const kMaxText = 24_000_000;

// A live line may be older than the newest shown, as logs arrive one after the other; it is put in
// its place if that is among the last so many.
const kReorder = 4_000;

export interface Live {
  rank: number;
  stream: Line["stream"];
  offset: number; // where the piece begins
  end: number; // and where it ends
  lines: Line[];
}

export class LineWindow {
  lines: Line[] = [];
  at_begin = true;
  at_end = true;
  has_skip = false; // something that was not sent is left out between the lines
  private text = 0;
  private ends = new Map<string, number>(); // by log, where the next live piece must begin
  private open = new Map<string, Line>(); // by log, its unfinished last line

  constructor(
    readonly max_lines = kMaxLines,
    readonly max_text = kMaxText,
  ) {}

  get first(): Line | undefined {
    return this.lines.find((line) => !line.notice);
  }

  get last(): Line | undefined {
    for (let i = this.lines.length - 1; i >= 0; --i) {
      if (!this.lines[i]!.notice) return this.lines[i];
    }
    return undefined;
  }

  // Replaces everything.
  set(chunk: Chunk): void {
    this.lines = chunk.lines;
    this.at_begin = chunk.at_begin;
    this.at_end = chunk.at_end;
    this.has_skip = false;
    this.ends.clear();
    this.open.clear();
    this.text = 0;
    for (const line of chunk.lines) {
      this.text += line.text.length;
      if (this.at_end && !line.notice) this.note_end(line);
    }
  }

  prepend(chunk: Chunk): void {
    this.lines = [...chunk.lines, ...this.lines];
    this.at_begin = chunk.at_begin || chunk.lines.length === 0;
    for (const line of chunk.lines) this.text += line.text.length;
    this.drop_last();
  }

  append(chunk: Chunk): void {
    const last = this.last;
    // An unfinished last line comes again, longer.
    if (last && !last.ended && chunk.lines[0] && line_key(chunk.lines[0]) === line_key(last)) {
      this.remove(last);
    }
    for (const line of chunk.lines) this.text += line.text.length;
    this.lines = [...this.lines, ...chunk.lines];
    this.at_end = chunk.at_end;
    if (this.at_end) {
      this.ends.clear();
      this.open.clear();
      for (const line of this.lines) if (!line.notice) this.note_end(line);
    }
    this.drop_first();
  }

  // Pieces of the follow stream. Each line is taken once: what came before is left out, and what is
  // missing becomes a notice. Returns how many lines were new.
  append_live(pieces: readonly Live[]): number {
    let count = 0;
    const fresh: Line[] = [];
    for (const piece of pieces) {
      const known = this.ends.get(log_key(piece));
      const first = piece.lines.find((line) => known === undefined || line.offset >= known);
      if (known !== undefined && first && first.offset > known) fresh.push(this.skip(first, known));
      for (const line of piece.lines) {
        if (!this.is_new(line, known)) continue;
        this.replace_open(line, fresh);
        fresh.push(line);
        count += Number(line.ended);
      }
      this.ends.set(log_key(piece), Math.max(piece.end, known ?? 0));
    }
    this.insert(fresh);
    this.drop_first();
    return count;
  }

  // From now on what is written is not taken in; it is loaded like everything else.
  detach(): void {
    this.at_end = false;
    this.ends.clear();
    this.open.clear();
  }

  // Where the next piece of a log must begin, if that is not known yet.
  expect(log: { rank: number; stream: Line["stream"] }, offset: number): void {
    if (this.at_end && !this.ends.has(log_key(log))) this.ends.set(log_key(log), offset);
  }

  // As they are to be shown: those that are still being written, such as progress bars, at the end.
  in_order(): readonly Line[] {
    if (this.open.size === 0) return this.lines;
    const open = new Set(this.open.values());
    const ended = this.lines.filter((line) => !open.has(line));
    const going_on = this.lines.filter((line) => open.has(line));
    return ended.concat(going_on.sort((a, b) => a.rank - b.rank));
  }

  private is_new(line: Line, known: number | undefined): boolean {
    if (known !== undefined) return line.offset >= known;
    const first = this.first;
    return this.at_begin || first === undefined || compare(line, first) > 0;
  }

  private skip(before: Line, known: number): Line {
    this.has_skip = true;
    let number = -1;
    for (let i = this.lines.length - 1; i >= 0 && number < 0; --i) {
      const line = this.lines[i]!;
      if (!line.notice && line.rank === before.rank && line.stream === before.stream)
        number = line.number;
      if (this.lines.length - i > kReorder) break;
    }
    const lines = number >= 0 && before.number > number ? before.number - number - 1 : -1;
    return make_notice(before, { kind: "skip", bytes: before.offset - known, lines });
  }

  // The unfinished line that this one continues is taken out.
  private replace_open(line: Line, fresh: Line[]): void {
    const key = log_key(line);
    const before = this.open.get(key);
    if (before && before.offset <= line.offset) {
      const at = fresh.lastIndexOf(before);
      if (at >= 0) fresh.splice(at, 1);
      else this.remove(before);
      this.open.delete(key);
    }
    if (!line.ended) this.open.set(key, line);
  }

  private remove(line: Line): void {
    const at = this.lines.lastIndexOf(line);
    if (at < 0) return;
    this.text -= line.text.length;
    this.lines = this.lines.filter((_, i) => i !== at);
  }

  private insert(fresh: Line[]): void {
    if (fresh.length === 0) return;
    if (this.ends.size > 1) sort_around_notices(fresh);
    for (const line of fresh) this.text += line.text.length;
    const floor = Math.max(0, this.lines.length - kReorder);
    let cut = this.lines.length;
    while (cut > floor && !this.lines[cut - 1]!.notice && compare(this.lines[cut - 1]!, fresh[0]!) > 0)
      --cut;
    const tail = this.lines.slice(cut);
    this.lines = this.lines.slice(0, cut).concat(merge(tail, fresh));
  }

  private note_end(line: Line): void {
    const key = log_key(line);
    const end = line.ended ? line.offset + line.size + 1 : line.offset;
    this.ends.set(key, Math.max(end, this.ends.get(key) ?? 0));
    if (!line.ended) this.open.set(key, line);
  }

  private over(): boolean {
    return this.lines.length > this.max_lines || this.text > this.max_text;
  }

  // Too much is dropped by a quarter at once, so that it is not done for every line.
  private drop_first(): void {
    if (!this.over()) return;
    let drop = 0;
    const keep = Math.floor(this.max_lines * 0.75);
    const text = this.max_text * 0.75;
    while (drop < this.lines.length - 1 && (this.lines.length - drop > keep || this.text > text)) {
      this.text -= this.lines[drop++]!.text.length;
    }
    this.lines = this.lines.slice(drop);
    this.at_begin = false;
    this.has_skip = this.lines.some((line) => line.notice?.kind === "skip");
  }

  private drop_last(): void {
    if (!this.over()) return;
    let end = this.lines.length;
    const keep = Math.floor(this.max_lines * 0.75);
    const text = this.max_text * 0.75;
    while (end > 1 && (end > keep || this.text > text)) this.text -= this.lines[--end]!.text.length;
    this.lines = this.lines.slice(0, end);
    this.at_end = false;
    this.ends.clear();
    this.open.clear();
    this.has_skip = this.lines.some((line) => line.notice?.kind === "skip");
  }
}

// Sorts, with each notice staying before the line that it was made for.
function sort_around_notices(lines: Line[]): void {
  lines.sort((a, b) => compare(a, b) || Number(!a.notice) - Number(!b.notice));
}

function merge(a: readonly Line[], b: readonly Line[]): Line[] {
  const all: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (j >= b.length || (i < a.length && compare(a[i]!, b[j]!) <= 0)) all.push(a[i++]!);
    else all.push(b[j++]!);
  }
  return all;
}
