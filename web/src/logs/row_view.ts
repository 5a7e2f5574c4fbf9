// SPDX-License-Identifier: Apache-2.0
// One row of a log as elements. Text comes from a log and goes in as text nodes alone; colours that
// are not in the style sheet are set through the element's style object, which the content policy
// allows, never as markup.
import { Flag, kRgb, parse_line, type Span, type Style } from "./ansi";
import { css, readable, text_on } from "./colour";
import { bytes_text, date_time_text, ranks_text } from "../format";
import { Level } from "./level";
import { bytes_left, kMaxMore, kShownAtFirst, type Line } from "./lines";

export interface RowOptions {
  wrap: boolean;
  times: boolean;
  numbers: boolean;
  label: ((line: Line) => Label) | null; // whose line it is
  marks: ((line: Line) => readonly (readonly [number, number])[]) | null; // what was searched for
}

export interface Label {
  text: string;
  title: string;
  href: string; // the line in its own log
}

const kRankColours = 12;
const kLevelClass: Record<number, string> = {
  [Level.kDebug]: " level-debug",
  [Level.kInfo]: "",
  [Level.kWarning]: " level-warning",
  [Level.kError]: " level-error",
};
const kDark = 0x15181c;
const kLight = 0xf6f7f8;

// The caller gives it its class.
export function build_row(line: Line, options: RowOptions): HTMLElement {
  const row = element("div", "");
  row.setAttribute("role", "row");
  if (line.notice) {
    row.append(cell("x", notice_text(line)));
    return row;
  }
  if (options.numbers) row.append(cell("n", line.number >= 0 ? String(line.number + 1) : "·"));
  if (options.times) row.append(time_cell(line));
  if (options.label) row.append(label_cell(line, options));
  const text = cell("x", "");
  draw_text(text, line, options);
  row.append(text);
  const more = more_button(line);
  if (more) text.after(more);
  return row;
}

export function row_class(line: Line, as: Level, options: RowOptions): string {
  if (line.notice) return "row gap";
  let name = "row" + (kLevelClass[as] ?? "");
  if (line.stream === "stderr") name += " stderr";
  if (!line.ended) name += " open";
  if (line.separated) name += " separated";
  if (line.context) name += " context";
  if (options.wrap || is_expanded(line)) name += " wrap";
  return name;
}

export function is_expanded(line: Line): boolean {
  return line.more !== "" || line.shown > kShownAtFirst;
}

export function shown_text(line: Line): string {
  const text = line.text + line.more;
  return text.length > line.shown ? cut(text, line.shown) : text;
}

// Not between the two halves of a character.
function cut(text: string, at: number): string {
  const code = text.charCodeAt(at - 1);
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? at - 1 : at);
}

function draw_text(into: HTMLElement, line: Line, options: RowOptions): void {
  const marks = line.hits ?? options.marks?.(line) ?? [];
  // A redrawn line is drawn from all of it: what is at its end is what shows.
  const text = line.text.includes("\r") ? line.text + line.more : shown_text(line);
  for (const span of parse_line(text, marks)) into.append(draw_span(span));
}

function draw_span(span: Span): Node {
  if (!span.style && !span.symbol && !span.hit) return document.createTextNode(span.text);
  const node = element(span.hit ? "mark" : "span", span.symbol ? "symbol" : "");
  node.append(span.text);
  if (span.style && !span.hit) paint(node, span.style);
  return node;
}

function paint(node: HTMLElement, style: Style): void {
  const { flags } = style;
  const inverse = (flags & Flag.kInverse) !== 0;
  const fg = inverse ? style.bg : style.fg;
  const bg = inverse ? style.fg : style.bg;
  const names = node.className ? [node.className] : [];
  if (flags & Flag.kBold) names.push("bold");
  if (flags & Flag.kDim) names.push("dim");
  if (flags & Flag.kItalic) names.push("italic");
  if (flags & Flag.kUnderline) names.push("underline");
  if (flags & Flag.kStrike) names.push("strike");
  if (inverse && bg < 0) names.push("on-text");
  if (inverse && fg < 0) names.push("as-page");
  if (fg >= 0 && fg < kRgb) names.push(`f${fg}`);
  if (bg >= 0 && bg < kRgb) names.push(`b${bg}`);
  node.className = names.join(" ");
  if (fg >= kRgb && bg < 0) node.style.color = for_both(fg - kRgb);
  else if (fg >= kRgb) node.style.color = css(bg >= kRgb ? readable(fg - kRgb, bg - kRgb) : fg - kRgb);
  if (bg >= kRgb) {
    node.style.backgroundColor = css(bg - kRgb);
    if (fg < 0) node.style.color = css(text_on(bg - kRgb));
  }
}

function for_both(rgb: number): string {
  return `light-dark(${css(readable(rgb, kLight))}, ${css(readable(rgb, kDark))})`;
}

function notice_text(line: Line): string {
  const { kind, bytes, lines } = line.notice!;
  if (kind === "hole")
    return `${bytes_text(bytes)} are left out here: this log keeps its first and newest part`;
  const amount = lines >= 0 ? `${lines.toLocaleString("en")} lines` : bytes_text(bytes);
  return `${amount} came too fast to be shown; they load when you stop here`;
}

function time_cell(line: Line): HTMLElement {
  const node = cell("t", line.time_us ? format_time(line.time_us) : "");
  if (line.time_us) node.title = date_time_text(line.time_us);
  return node;
}

function label_cell(line: Line, options: RowOptions): HTMLElement {
  const { text, title, href } = options.label!(line);
  const node = cell(line.folded ? "r" : `r rank${line.rank % kRankColours}`, "");
  const link = document.createElement("a");
  link.href = href;
  link.title = title;
  link.tabIndex = -1;
  link.append(text);
  node.append(link);
  return node;
}

function more_button(line: Line): HTMLElement | null {
  const hidden = line.text.includes("\r") ? 0 : line.text.length + line.more.length - line.shown;
  const left = bytes_left(line);
  if (hidden <= 0 && left <= 0) return null;
  const holder = cell("more", "");
  if (hidden <= 0 && line.text.length + line.more.length >= kMaxMore) {
    holder.append(`the rest of ${bytes_text(line.size)} is in the log's file: download it`);
    return holder;
  }
  const button = document.createElement("button");
  button.type = "button";
  button.append(`${bytes_text(line.size)} line: show more`);
  button.tabIndex = -1;
  holder.append(button);
  return holder;
}

function cell(name: string, text: string): HTMLElement {
  const node = element("span", name);
  node.setAttribute("role", "gridcell");
  if (text) node.append(text);
  return node;
}

function element(tag: string, name: string): HTMLElement {
  const node = document.createElement(tag);
  if (name) node.className = name;
  return node;
}

export function ranks_of(line: Line): string {
  return line.folded
    ? ranks_text([line.rank, ...line.folded.map((other) => other.rank)])
    : String(line.rank);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

export function format_time(time_us: number): string {
  const date = new Date(time_us / 1000);
  const ms = String(date.getMilliseconds()).padStart(3, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${ms}`;
}
