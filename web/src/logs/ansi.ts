// SPDX-License-Identifier: Apache-2.0
// From a line as its worker wrote it to what the last row of a terminal would show of it: colours,
// redrawn progress bars, and nothing else. A log is data from anybody, so no sequence is ever acted
// on beyond this one row: cursor moves stay inside it, titles, links, clipboard and screen commands
// are left out, and every control or invisible character becomes a symbol that can be seen.

export const enum Flag {
  kBold = 1,
  kDim = 2,
  kItalic = 4,
  kUnderline = 8,
  kInverse = 16,
  kStrike = 32,
}

// A colour: -1 the theme's own, 0 to 15 the palette, kRgb + 0xRRGGBB any other.
export const kNoColour = -1;
export const kRgb = 0x1000000;

export interface Style {
  fg: number;
  bg: number;
  flags: number;
}

export interface Span {
  text: string;
  style: Style | null; // null: nothing special
  symbol: boolean; // stands for a character that cannot be shown
  hit: boolean; // found by the search
}

export type Match = readonly [number, number]; // UTF-16 places in the line as written

// A cursor command cannot make a row wider than this.
const kMaxColumn = 4096;

// Characters that a row never contains as they are: controls, line separators, direction changes,
// and those that take no place. Joiners (200C, 200D) stay, words and emoji are written with them.
const kSpecial =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u;
const kMark = /^\p{M}$/u;

// The row's cells: what stands in each column, how, and which character of the line put it there.
class Row {
  chars: string[] = [];
  styles: (Style | null)[] = [];
  symbols: boolean[] = [];
  sources: number[] = [];
  column = 0;
  style: Style | null = null;

  put(text: string, source: number, symbol: boolean): void {
    const at = this.column++;
    this.chars[at] = text;
    this.styles[at] = this.style;
    this.symbols[at] = symbol;
    this.sources[at] = source;
  }

  put_mark(text: string, source: number): void {
    if (this.column === 0) this.put(text, source, false);
    else this.chars[this.column - 1] += text;
  }

  move_to(column: number): void {
    const to = Math.max(0, Math.min(column, kMaxColumn));
    while (this.chars.length < to) {
      this.chars.push(" ");
      this.styles.push(null);
      this.symbols.push(false);
      this.sources.push(-1);
    }
    this.column = to;
  }

  erase(how: number): void {
    if (how === 0) {
      for (const list of [this.chars, this.styles, this.symbols, this.sources]) {
        list.length = Math.min(list.length, this.column);
      }
      return;
    }
    const end = how === 1 ? Math.min(this.column + 1, this.chars.length) : this.chars.length;
    for (let i = 0; i < end; ++i) {
      this.chars[i] = " ";
      this.styles[i] = null;
      this.symbols[i] = false;
      this.sources[i] = -1;
    }
    if (how === 2) this.trim();
  }

  // A row that was erased as a whole has no blanks before its next text.
  private trim(): void {
    for (const list of [this.chars, this.styles, this.symbols, this.sources]) {
      list.length = Math.min(list.length, this.column);
    }
  }
}

// What is shown of `text`; `hits` are places in it, in order.
export function parse_line(text: string, hits: readonly Match[] = []): Span[] {
  if (text === "") return [];
  if (hits.length === 0 && !kSpecial.test(text)) {
    return [{ text, style: null, symbol: false, hit: false }];
  }
  const row = new Row();
  for (let i = 0; i < text.length;) i = step(row, text, i);
  return to_spans(row, hits);
}

// The same as plain text: for copying, comparing and guessing.
export function plain_text(text: string): string {
  if (!kSpecial.test(text)) return text;
  return parse_line(text)
    .map((span) => span.text)
    .join("");
}

function step(row: Row, text: string, i: number): number {
  const code = text.charCodeAt(i);
  if (code >= 0x20 && code < 0x7f) {
    row.put(text[i]!, i, false);
    return i + 1;
  }
  if (code === 0x1b) return escape(row, text, i);
  if (code === 0x0d) row.column = 0;
  else if (code === 0x08) row.column = Math.max(0, row.column - 1);
  else if (code === 0x09) row.put("\t", i, false);
  else if (code < 0x20) row.put(String.fromCharCode(0x2400 + code), i, true);
  else if (code === 0x7f) row.put("\u2421", i, true);
  else return step_wide(row, text, i);
  return i + 1;
}

function step_wide(row: Row, text: string, i: number): number {
  const character = String.fromCodePoint(text.codePointAt(i)!);
  if (kSpecial.test(character)) {
    const hex = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    row.put(`<U+${hex}>`, i, true);
  } else if (kMark.test(character)) {
    row.put_mark(character, i);
  } else {
    row.put(character, i, false);
  }
  return i + character.length;
}

// Escape sequences, by their form alone, so that an unknown one is left out as a whole. One that
// is not complete in this line shows its ESC, and the rest is text: it can hide nothing.
const kCsi = /\x1b\[([0-?]*)([ -/]*)([@-~])/y; // eslint-disable-line no-control-regex
const kString = /\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\)/y; // eslint-disable-line no-control-regex
const kShort = /\x1b[ -/]*[0-OQ-WYZ`-~]/y; // eslint-disable-line no-control-regex

function escape(row: Row, text: string, i: number): number {
  kCsi.lastIndex = i;
  const csi = kCsi.exec(text);
  if (csi) {
    if (csi[2] === "" && /^[\d;:]*$/.test(csi[1]!)) control(row, csi[1]!, csi[3]!);
    return i + csi[0].length;
  }
  for (const form of [kString, kShort]) {
    form.lastIndex = i;
    const found = form.exec(text);
    if (found) return i + found[0].length;
  }
  row.put("\u241b", i, true);
  return i + 1;
}

function control(row: Row, parameters: string, what: string): void {
  const count = Math.min(Number.parseInt(parameters, 10) || 0, kMaxColumn);
  if (what === "m") row.style = select_graphic(row.style, parameters);
  else if (what === "K") row.erase(count);
  else if (what === "G") row.move_to(Math.max(count, 1) - 1);
  else if (what === "C") row.move_to(row.column + Math.max(count, 1));
  else if (what === "D") row.move_to(row.column - Math.max(count, 1));
}

const kSet: Record<number, number> = {
  1: Flag.kBold,
  2: Flag.kDim,
  3: Flag.kItalic,
  4: Flag.kUnderline,
  7: Flag.kInverse,
  9: Flag.kStrike,
  21: Flag.kUnderline,
};
const kClear: Record<number, number> = {
  22: Flag.kBold | Flag.kDim,
  23: Flag.kItalic,
  24: Flag.kUnderline,
  27: Flag.kInverse,
  29: Flag.kStrike,
};

function select_graphic(before: Style | null, parameters: string): Style | null {
  const style = before ? { ...before } : { fg: kNoColour, bg: kNoColour, flags: 0 };
  const fields = parameters.split(";");
  for (let i = 0; i < fields.length; ++i) {
    const parts = fields[i]!.split(":").map((part) => Number.parseInt(part, 10) || 0);
    const code = parts[0]!;
    if (code === 38 || code === 48) {
      const rest =
        parts.length > 1
          ? parts.slice(1)
          : fields.slice(i + 1, i + 5).map((f) => Number.parseInt(f, 10) || 0);
      const [colour, used] = extended_colour(rest, parts.length > 1);
      if (parts.length === 1) i += used;
      if (colour !== null) style[code === 38 ? "fg" : "bg"] = colour;
    } else {
      set_attribute(style, code, parts[1]);
    }
  }
  const plain = style.fg === kNoColour && style.bg === kNoColour && style.flags === 0;
  return plain ? null : style;
}

function set_attribute(style: Style, code: number, kind: number | undefined): void {
  if (code === 0) {
    style.fg = style.bg = kNoColour;
    style.flags = 0;
  } else if (code === 4 && kind === 0) style.flags &= ~Flag.kUnderline;
  else if (kSet[code]) style.flags |= kSet[code]!;
  else if (kClear[code]) style.flags &= ~kClear[code]!;
  else if (code >= 30 && code <= 37) style.fg = code - 30;
  else if (code === 39) style.fg = kNoColour;
  else if (code >= 40 && code <= 47) style.bg = code - 40;
  else if (code === 49) style.bg = kNoColour;
  else if (code >= 90 && code <= 97) style.fg = code - 82;
  else if (code >= 100 && code <= 107) style.bg = code - 92;
}

// What follows 38 or 48: `5;n` or `2;r;g;b`, with colons also `2:space:r:g:b`. Returns the colour,
// if it is one, and how many fields it took.
function extended_colour(rest: number[], colons: boolean): [number | null, number] {
  if (rest[0] === 5) {
    const index = rest[1] ?? -1;
    return [index >= 0 && index <= 255 ? indexed_colour(index) : null, 2];
  }
  if (rest[0] !== 2) return [null, 1];
  const [r, g, b] = colons && rest.length >= 5 ? rest.slice(2) : rest.slice(1);
  const parts = [r ?? -1, g ?? -1, b ?? -1];
  if (parts.some((part) => part < 0 || part > 255)) return [null, 4];
  return [kRgb + parts[0]! * 0x10000 + parts[1]! * 0x100 + parts[2]!, 4];
}

// The 256 colours: the palette, a cube of six levels each, and 24 greys.
function indexed_colour(index: number): number {
  if (index < 16) return index;
  if (index >= 232) return kRgb + (8 + (index - 232) * 10) * 0x10101;
  const level = (n: number) => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return (
    kRgb +
    level(Math.floor(cube / 36)) * 0x10000 +
    level(Math.floor(cube / 6) % 6) * 0x100 +
    level(cube % 6)
  );
}

function to_spans(row: Row, hits: readonly Match[]): Span[] {
  const spans: Span[] = [];
  let last: Span | null = null;
  let parts: string[] = [];
  for (let i = 0; i < row.chars.length; ++i) {
    const style = row.styles[i] ?? null;
    const symbol = row.symbols[i]!;
    const hit = hits.length > 0 && is_hit(hits, row.sources[i]!);
    if (!last || last.symbol !== symbol || last.hit !== hit || !same_style(last.style, style)) {
      if (last) last.text = parts.join("");
      parts = [];
      last = { text: "", style, symbol, hit };
      spans.push(last);
    }
    parts.push(row.chars[i]!);
  }
  if (last) last.text = parts.join("");
  return spans;
}

function same_style(a: Style | null, b: Style | null): boolean {
  if (a === b) return true;
  return a !== null && b !== null && a.fg === b.fg && a.bg === b.bg && a.flags === b.flags;
}

function is_hit(hits: readonly Match[], source: number): boolean {
  let low = 0;
  let high = hits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (hits[middle]![1] <= source) low = middle + 1;
    else high = middle;
  }
  return low < hits.length && hits[low]![0] <= source;
}
