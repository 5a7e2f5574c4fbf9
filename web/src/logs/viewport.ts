// SPDX-License-Identifier: Apache-2.0
// Draws the rows that can be seen of a window of lines, in an element that scrolls natively. The
// element is only as high as the window, never as the log: what lies outside is loaded as the reader
// comes near, and the view stays at the row it shows while rows come and go above it.
import { level_at } from "./errors";
import type { Line } from "./lines";
import { Metrics } from "./metrics";
import { RowIndex } from "./row_index";
import { Layout } from "./layout";
import { build_row, is_expanded, type RowOptions, row_class, shown_text } from "./row_view";
import { RowSelection } from "./row_selection";

export interface ViewportEvents {
  on_need(way: "before" | "after"): void; // fewer than two screens are left that way
  on_scroll(at_end: boolean): void; // by the reader
  on_current(line: Line | null): void;
  on_more(line: Line): void; // more of a long line
  on_drawn(first: Line, last: Line): void;
}

export type Show = { kind: "keep" } | { kind: "end" } | { kind: "line"; line: Line };

const kOverscan = 400; // pixels
const kNeed = 2; // screens
const kPasses = 4; // until measured heights have settled

let next_id = 0;

export class Viewport {
  readonly canvas: HTMLElement;
  readonly selection: RowSelection;
  private readonly metrics: Metrics;
  rows: readonly Line[] = [];
  current: Line | null = null;
  mark: Line | null = null; // where the marked lines begin
  private layout = new Layout();
  private drawn = new Map<Line, HTMLElement>();
  private measured = new WeakMap<Line, number>();
  private index = new RowIndex([]);
  private anchor: { line: Line; delta: number } | null = null;
  private stick = false;
  private expected = -1; // where we scrolled to
  private frame = 0;
  private width = 0;
  private resize: ResizeObserver;
  private id = `log${next_id++}`;

  constructor(
    readonly root: HTMLElement,
    private options: RowOptions,
    private readonly events: ViewportEvents,
  ) {
    this.canvas = document.createElement("div");
    this.canvas.className = "log-canvas";
    this.canvas.setAttribute("role", "rowgroup");
    root.append(this.canvas);
    this.metrics = new Metrics(root);
    this.selection = new RowSelection(
      this.canvas,
      (node) => this.line_of(node),
      () => this.rows,
    );
    root.addEventListener("scroll", this.on_scroll, { passive: true });
    this.canvas.addEventListener("click", this.on_click);
    this.resize = new ResizeObserver(() => this.on_resize());
    this.resize.observe(root);
    this.metrics.measure(this.canvas);
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    this.resize.disconnect();
    this.selection.close();
    this.root.removeEventListener("scroll", this.on_scroll);
    this.canvas.remove();
  }

  // New rows; the view goes to the end, to a line, or stays where it is.
  show(rows: readonly Line[], how: Show): void {
    this.rows = rows;
    this.metrics.note_number(rows.at(-1)?.number ?? 0);
    this.index = new RowIndex(rows);
    this.layout.reset(rows.length, (i) => this.height_of(rows[i]!));
    if (this.current) this.current = rows[this.find(this.current)] ?? null;
    if (how.kind === "end") this.stick = true;
    if (how.kind === "line") {
      this.stick = false;
      this.anchor = { line: how.line, delta: -Math.round(this.root.clientHeight / 3) };
    }
    this.draw();
  }

  set_options(options: RowOptions): void {
    this.options = options;
    this.redraw_all();
  }

  // A line shows more or less of itself.
  redraw(line: Line): void {
    this.forget(line);
    const at = this.index.place(line);
    if (at !== undefined) this.layout.set_height(at, this.height_of(line));
    this.draw();
  }

  redraw_all(): void {
    for (const line of [...this.drawn.keys()]) this.forget(line);
    this.measured = new WeakMap();
    this.layout.reset(this.rows.length, (i) => this.height_of(this.rows[i]!));
    this.draw();
  }

  get at_end(): boolean {
    return this.root.scrollTop + this.root.clientHeight >= this.layout.total() - 4;
  }

  // How far down the rows the view is, 0 to 1, and how much of them it shows.
  share(): { at: number; size: number } {
    const total = Math.max(this.layout.total(), 1);
    return { at: this.root.scrollTop / total, size: Math.min(1, this.root.clientHeight / total) };
  }

  scroll_to_share(at: number): void {
    this.stick = false;
    this.root.scrollTop = at * this.layout.total();
  }

  first_visible(): Line | undefined {
    return this.rows[this.layout.at(this.root.scrollTop)];
  }

  unstick(): void {
    this.stick = false;
    this.take_anchor();
  }

  // Moves the current row and keeps it in view.
  move(delta: number): void {
    const from = this.current
      ? this.find(this.current)
      : this.layout.at(this.root.scrollTop) - Math.sign(delta);
    let to = Math.max(0, Math.min(this.rows.length - 1, from + delta));
    const step = Math.sign(delta);
    while (this.rows[to]?.notice && this.rows[to + step]) to += step;
    const line = this.rows[to];
    if (line) this.set_current(line, true);
  }

  page(direction: number): void {
    const view = Math.max(this.root.clientHeight - 2 * this.metrics.row_height, this.metrics.row_height);
    this.root.scrollBy({ top: direction * view });
  }

  scroll_by_columns(columns: number): void {
    this.root.scrollBy({ left: columns * this.metrics.char_width });
  }

  set_current(line: Line | null, reveal: boolean): void {
    const before = this.current;
    this.current = line;
    for (const changed of [before, line]) if (changed) this.refresh_class(changed);
    if (this.mark) for (const drawn of this.drawn.keys()) this.refresh_class(drawn);
    const node = line ? this.drawn.get(line) : undefined;
    if (node) this.root.setAttribute("aria-activedescendant", node.id);
    else this.root.removeAttribute("aria-activedescendant");
    this.events.on_current(line);
    if (line && reveal) this.reveal(line);
  }

  set_mark(line: Line | null): void {
    this.mark = line;
    for (const drawn of this.drawn.keys()) this.refresh_class(drawn);
  }

  // The marked rows, or the current one.
  marked(): readonly Line[] {
    if (!this.current) return [];
    const [from, to] = this.marked_range();
    return this.rows.slice(from, to + 1);
  }

  private marked_range(): [number, number] {
    const at = this.current ? this.find(this.current) : -1;
    const other = this.mark ? this.find(this.mark) : at;
    return [Math.min(at, other), Math.max(at, other)];
  }

  private reveal(line: Line): void {
    const at = this.find(line);
    const top = this.layout.top(at);
    const bottom = top + this.layout.height(at);
    const margin = Math.min(3 * this.metrics.row_height, this.root.clientHeight / 4);
    const view = this.root.clientHeight;
    if (top - margin < this.root.scrollTop) this.root.scrollTop = Math.max(0, top - margin);
    else if (bottom + margin > this.root.scrollTop + view) this.root.scrollTop = bottom + margin - view;
    this.schedule();
  }

  find(line: Line): number {
    return this.index.find(line);
  }

  private schedule(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  private on_scroll = (): void => {
    if (Math.abs(this.root.scrollTop - this.expected) < 1) return;
    this.expected = -1;
    this.stick = false;
    this.take_anchor();
    this.events.on_scroll(this.at_end);
    this.schedule();
  };

  private take_anchor(): void {
    const at = this.layout.at(this.root.scrollTop);
    const line = this.rows[at];
    this.anchor = line ? { line, delta: this.root.scrollTop - this.layout.top(at) } : null;
  }

  private on_resize(): void {
    if (this.root.clientWidth === this.width) {
      this.schedule();
      return;
    }
    this.width = this.root.clientWidth;
    this.metrics.measure(this.canvas);
    this.redraw_all();
  }

  private wraps(line: Line): boolean {
    return this.options.wrap || is_expanded(line);
  }

  private height_of(line: Line): number {
    if (!this.wraps(line)) return this.metrics.row_height;
    const known = this.measured.get(line);
    if (known !== undefined) return known;
    return this.metrics.wrapped_height(shown_text(line), this.options);
  }

  // Places the rows that can be seen. Drawing them may show that their heights are others than
  // thought, which moves what is seen; a few passes settle it.
  private draw(): void {
    for (let pass = 0; pass < kPasses; ++pass) {
      this.set_height(this.layout.total());
      this.restore_place();
      const [from, to] = this.visible();
      this.place_rows(from, to);
      if (!this.measure_rows(from, to)) break;
    }
    this.set_height(this.layout.total());
    this.restore_place();
    this.check();
  }

  private set_height(height: number): void {
    this.canvas.style.height = `${height}px`;
  }

  private restore_place(): void {
    let to = this.root.scrollTop;
    if (this.stick) to = this.layout.total() - this.root.clientHeight;
    else if (this.anchor) {
      const at = this.find(this.anchor.line);
      to = this.layout.top(at) + this.anchor.delta;
    }
    to = Math.max(0, Math.min(to, this.layout.total() - this.root.clientHeight));
    if (Math.abs(to - this.root.scrollTop) >= 1) this.root.scrollTop = to;
    this.expected = this.root.scrollTop;
  }

  private visible(): [number, number] {
    const top = this.root.scrollTop;
    const from = this.layout.at(top - kOverscan);
    const to = this.layout.at(top + this.root.clientHeight + kOverscan);
    return [Math.max(0, from), to];
  }

  private place_rows(from: number, to: number): void {
    const keep = new Set<Line>();
    for (let i = from; i <= to; ++i) keep.add(this.rows[i]!);
    for (const line of this.selection.ends()) if (this.index.place(line) !== undefined) keep.add(line);
    for (const line of [...this.drawn.keys()]) if (!keep.has(line)) this.forget(line);
    let before: HTMLElement | null = null;
    const place = (line: Line) => this.index.place(line)!;
    for (const line of [...keep].sort((a, b) => place(a) - place(b))) {
      const at = place(line);
      let node = this.drawn.get(line);
      if (node && this.is_stale(node, line)) {
        this.forget(line);
        node = undefined;
      }
      if (!node) {
        node = this.build(line, at);
        this.drawn.set(line, node);
        // In the order of the rows, which is the order of reading and of selecting.
        if (before) before.after(node);
        else this.canvas.prepend(node);
      }
      node.style.transform = `translateY(${this.layout.top(at)}px)`;
      before = node;
    }
  }

  private build(line: Line, at: number): HTMLElement {
    const node = build_row(line, this.options);
    node.id = `${this.id}-${next_id++}`;
    this.metrics.note_label(node.querySelector(":scope > .r")?.textContent?.length ?? 0);
    node.dataset["folded"] = String(line.folded?.length ?? 0);
    node.setAttribute("aria-rowindex", String(line.number >= 0 ? line.number + 1 : at + 1));
    this.set_class(node, line);
    return node;
  }

  private is_stale(node: HTMLElement, line: Line): boolean {
    return node.dataset["folded"] !== String(line.folded?.length ?? 0);
  }

  private forget(line: Line): void {
    this.drawn.get(line)?.remove();
    this.drawn.delete(line);
    this.measured.delete(line);
  }

  private measure_rows(from: number, to: number): boolean {
    let changed = false;
    for (let i = from; i <= to; ++i) {
      const line = this.rows[i]!;
      if (!this.wraps(line) || this.measured.has(line)) continue;
      const height = this.drawn.get(line)!.getBoundingClientRect().height;
      this.measured.set(line, height);
      changed = this.layout.set_height(i, height) || changed;
    }
    return changed;
  }

  private refresh_class(line: Line): void {
    if (this.drawn.has(line)) this.set_class(this.drawn.get(line)!, line);
  }

  private set_class(node: HTMLElement, line: Line): void {
    const current = line === this.current;
    let marked = false;
    if (this.mark && !line.notice) {
      const [from, to] = this.marked_range();
      const at = this.index.place(line) ?? -1;
      marked = at >= from && at <= to;
    }
    node.className =
      row_class(line, level_at(this.rows, this.index.place(line) ?? 0), this.options) +
      (current ? " current" : "") +
      (marked ? " marked" : "");
    if (current || marked) node.setAttribute("aria-selected", "true");
    else node.removeAttribute("aria-selected");
  }

  // Tells where the view is and what it will need soon.
  check(): void {
    if (this.rows.length === 0) {
      this.events.on_need("before");
      this.events.on_need("after");
      return;
    }
    const view = this.root.clientHeight;
    const top = this.root.scrollTop;
    const first = this.rows[Math.max(0, this.layout.at(top))]!;
    const last = this.rows[Math.max(0, this.layout.at(top + view - 1))]!;
    this.events.on_drawn(first, last);
    if (top < kNeed * view) this.events.on_need("before");
    if (this.layout.total() - top - view < kNeed * view) this.events.on_need("after");
  }

  line_of(node: Node | null): Line | null {
    const element = node instanceof Element ? node : node?.parentElement;
    const row = element?.closest(".row");
    if (!row || row.parentElement !== this.canvas) return null;
    for (const [line, drawn] of this.drawn) if (drawn === row) return line;
    return null;
  }

  private on_click = (event: MouseEvent): void => {
    const target = event.target as Element;
    const line = this.line_of(target);
    if (!line || line.notice || target.closest("a")) return;
    if (target.closest("button")) {
      this.events.on_more(line);
      return;
    }
    if (!(getSelection()?.isCollapsed ?? true)) return;
    if (event.shiftKey && this.current) this.set_mark(this.mark ?? this.current);
    else if (this.mark) this.set_mark(null);
    this.set_current(line, false);
  };
}
