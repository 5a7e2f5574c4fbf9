// SPDX-License-Identifier: Apache-2.0
// What the log view does: loads what is needed, follows what is written, searches and moves. It owns
// the window of lines and the streams; the view draws its signals, the viewport its rows.
import { batch, signal } from "@preact/signals";
import { FilterSource } from "./filter";
import { fold, unfold } from "./fold";
import { Level, level_of } from "./level";
import { type Line, line_key } from "./lines";
import { is_single, type Logs, type Query, type Spot } from "./place";
import { error_block } from "./errors";
import { Finder } from "./finder";
import { LiveFeed } from "./live_feed";
import { load_more_of } from "./long_line";
import { shows } from "./row_index";
import { type Chunk, type Facts, open_source, type Source } from "./source";
import type { Show, Viewport } from "./viewport";
import { type Live, LineWindow } from "./window";

const kPage = 400;
const kFirstPage = 200; // small, to be on the screen soon
// Reading stopped: so many live lines are taken in behind the view, then they are only counted.
const kKeepWhilePaused = 3_000;

export class LogSession {
  readonly rows = signal<readonly Line[]>([]);
  readonly following = signal(false);
  readonly new_lines = signal(0); // since following was paused
  readonly loading = signal<string>(""); // what is going on, if it takes long
  readonly error = signal("");
  readonly notice = signal(""); // what a command has to say
  readonly facts = signal<Facts>({});
  readonly current = signal<Line | null>(null);
  readonly first = signal<Line | null>(null); // on the screen
  readonly last = signal<Line | null>(null);
  readonly feed: LiveFeed;
  readonly finder: Finder;

  viewport: Viewport | null = null;
  private source: Source;
  private window = new LineWindow();
  private loaded = false;
  private way: Show = { kind: "keep" }; // where the rows were to be shown last
  private marks_target = false;
  private work: AbortController | null = null; // the jump that goes on
  private more: { before: AbortController | null; after: AbortController | null } = {
    before: null,
    after: null,
  };

  constructor(
    readonly logs: Logs,
    private folding: boolean,
    private at_least: Level,
  ) {
    this.source = this.make_source();
    this.finder = new Finder(logs, (line) => this.go_to(line));
    this.feed = new LiveFeed(logs, {
      on_pieces: (pieces, fresh) => this.take_live(pieces, fresh),
      on_page: ({ size, total_lines, lines }) => {
        if (!this.single) return;
        const last = lines.at(-1)?.[1] ?? -1;
        this.note_facts({
          exists: true,
          size,
          total_lines: total_lines < 0 ? last + Number(last >= 0) : total_lines,
        });
      },
      on_skip: (log, from) => this.window.expect(log, from),
      on_emptied: () => this.reload(),
    });
  }

  close(): void {
    this.feed.close();
    this.finder.cancel();
    this.abort_all();
    this.viewport = null;
  }

  // The rows that are already here are drawn by it, and all later ones.
  attach(viewport: Viewport): void {
    this.viewport = viewport;
    viewport.show(this.rows.peek(), this.way);
    if (this.way.kind === "line" && this.marks_target) viewport.set_current(this.way.line, false);
  }

  get single(): boolean {
    return is_single(this.logs);
  }

  get whole(): boolean {
    return this.window.at_begin && this.window.at_end;
  }

  // Shows a place. The rows that are there stay until the new ones have come.
  async open(spot: Spot, target?: Line): Promise<void> {
    this.abort_all();
    const work = new AbortController();
    this.work = work;
    const slow = setTimeout(() => (this.loading.value = "loading"), 150);
    try {
      const chunk = await this.source.load(spot, kFirstPage, work.signal);
      if (work.signal.aborted) return;
      this.take_chunk(chunk, spot, target);
      this.error.value = "";
    } catch (error) {
      if (!work.signal.aborted) this.failed(error);
    } finally {
      clearTimeout(slow);
      if (this.work === work) {
        this.work = null;
        this.loading.value = "";
        this.viewport?.check();
      }
    }
  }

  private take_chunk(chunk: Chunk, spot: Spot, target?: Line): void {
    const at_end = spot.kind === "end";
    this.window.set(chunk);
    this.loaded = true;
    this.note_facts(chunk.facts);
    batch(() => {
      this.following.value = at_end;
      if (at_end) this.new_lines.value = 0;
    });
    if (chunk.at_end) this.feed.flush();
    const line = at_end ? undefined : (this.find_target(spot, target) ?? chunk.lines[0]);
    this.show(at_end || !line ? { kind: "end" } : { kind: "line", line });
    this.marks_target = spot.kind !== "begin";
    this.viewport?.set_current(this.marks_target ? (line ?? null) : null, false);
  }

  private find_target(spot: Spot, target?: Line): Line | undefined {
    const lines = this.window.lines.filter((line) => !line.notice);
    if (target) return lines.find((line) => line_key(line) === line_key(target));
    if (spot.kind === "offset") return lines.findLast((line) => line.offset <= spot.offset);
    if (spot.kind === "at") {
      return lines.find(
        (line) => line.rank === spot.rank && line.stream === spot.stream && line.offset === spot.offset,
      );
    }
    return lines[0];
  }

  reload(): void {
    const first = this.viewport?.first_visible();
    void this.open(this.following.peek() || !first ? { kind: "end" } : this.spot_of(first));
  }

  spot_of(line: Line): Spot {
    if (this.single) return { kind: "offset", offset: line.offset };
    return {
      kind: "at",
      time_us: line.time_us,
      rank: line.rank,
      stream: line.stream,
      offset: line.offset,
    };
  }

  // To a line that may be outside of the window.
  go_to(line: Line): void {
    this.pause();
    const key = line_key(line);
    const row = this.rows.peek().find((other) => shows(other, key));
    if (row && this.viewport) {
      this.viewport.set_current(row, true);
      return;
    }
    if (this.at_least !== Level.kNone) this.set_level(Level.kNone, line);
    else void this.open(this.spot_of(line), line);
  }

  to_begin(): void {
    if (this.window.at_begin && this.window.at_end) {
      this.pause();
      const first = this.rows.peek()[0];
      if (first) this.viewport?.set_current(first, true);
    } else void this.open({ kind: "begin" });
  }

  to_end(): void {
    if (!this.window.at_end) {
      void this.open({ kind: "end" });
      return;
    }
    this.following.value = true;
    this.new_lines.value = 0;
    this.viewport?.set_current(null, false);
    this.show({ kind: "end" });
  }

  toggle_follow(): void {
    if (this.following.peek()) this.pause();
    else this.to_end();
  }

  // The reader looks at something: it stays where it is, while what is written is counted.
  pause(): void {
    if (!this.following.peek()) return;
    this.following.value = false;
    this.viewport?.unstick();
    // What was left out between the lines is loaded now.
    if (this.window.has_skip) {
      const first = this.viewport?.first_visible();
      const line = first?.notice ? this.window.last : first;
      if (line) void this.open(this.spot_of(line), line);
    }
  }

  on_scroll(at_end: boolean): void {
    if (!at_end) this.pause();
    else if (this.window.at_end && !this.following.peek()) {
      this.following.value = true;
      this.new_lines.value = 0;
      this.show({ kind: "end" });
    }
  }

  // The view comes near an end of the window.
  need(way: "before" | "after"): void {
    if (!this.loaded || this.work || this.more[way]) return;
    if (way === "before" ? this.window.at_begin : this.window.at_end) return;
    const line = way === "before" ? this.window.first : this.window.last;
    if (line) void this.load_more(way, line);
  }

  private async load_more(way: "before" | "after", line: Line): Promise<void> {
    const work = new AbortController();
    this.more[way] = work;
    try {
      const chunk = await this.source[way](line, kPage, work.signal);
      if (work.signal.aborted) return;
      this.note_facts(chunk.facts);
      if (way === "before") this.window.prepend(chunk);
      else this.window.append(chunk);
      this.more[way] = null;
      this.show({ kind: "keep" });
    } catch (error) {
      if (!work.signal.aborted) {
        this.failed(error);
        // Not at once again: the next scrolling asks anew.
        setTimeout(() => {
          if (this.more[way] === work) this.more[way] = null;
        }, 2_000);
      }
    }
  }

  set_folding(folding: boolean): void {
    this.folding = folding;
    this.show({ kind: "keep" });
  }

  set_level(at_least: Level, target?: Line): void {
    this.at_least = at_least;
    const place = target ?? this.current.peek() ?? this.viewport?.first_visible();
    this.source = this.make_source();
    const end = this.following.peek() || !place || place.notice;
    void this.open(end ? { kind: "end" } : this.spot_of(place), target);
  }

  async show_more(line: Line): Promise<void> {
    try {
      await load_more_of(line);
    } catch (error) {
      this.failed(error);
    }
    this.viewport?.redraw(line);
  }

  private make_source(): Source {
    if (this.at_least === Level.kNone) return open_source(this.logs);
    return new FilterSource(this.logs, this.at_least, (share) => {
      if (this.loading.peek())
        this.loading.value = `looking through the log, ${Math.round(share * 100)} %`;
    });
  }

  // The next line that looks like an error; those of one traceback count as one.
  async next_error(direction: 1 | -1): Promise<void> {
    const rows = this.rows.peek();
    const from = this.current.peek() ?? (direction > 0 ? this.first.peek() : this.last.peek());
    const at = from ? (this.viewport?.find(from) ?? 0) : 0;
    const found = error_block(rows, at, direction);
    if (found >= 0) {
      this.pause();
      this.viewport?.set_current(rows[found]!, true);
      return;
    }
    if (direction > 0 ? this.window.at_end : this.window.at_begin) {
      this.notice.value = direction > 0 ? "no error after this" : "no error before this";
      return;
    }
    await this.far_error(direction);
  }

  private async far_error(direction: 1 | -1): Promise<void> {
    this.pause();
    const edge = direction > 0 ? this.window.last : this.window.first;
    if (!edge) return;
    const work = new AbortController();
    this.work?.abort();
    this.work = work;
    this.loading.value = "looking for errors";
    try {
      const errors = new FilterSource(this.logs, Level.kError, () => {});
      const found = await errors.beyond(edge, direction, work.signal);
      if (work.signal.aborted) return;
      if (found) void this.open(this.spot_of(found), found);
      else this.notice.value = direction > 0 ? "no error after this" : "no error before this";
    } catch (error) {
      if (!work.signal.aborted) this.failed(error);
    } finally {
      this.loading.value = "";
      if (this.work === work) this.work = null;
    }
  }

  find(query: Query): void {
    this.finder.start(
      query,
      this.current.peek() ?? (this.following.peek() ? null : this.first.peek()),
      () => {
        this.viewport?.redraw_all();
      },
    );
  }

  private take_live(pieces: readonly Live[], fresh: number): boolean {
    if (!this.loaded) {
      // The log has come to be since it was asked for in vain.
      if (this.error.peek() && !this.work) void this.open({ kind: "end" });
      return false;
    }
    const following = this.following.peek();
    const all = this.at_least === Level.kNone;
    const wanted = all && this.single ? pieces : pieces.map((piece) => this.only_wanted(piece));
    if (!following && this.window.at_end && this.lines_behind_view() > kKeepWhilePaused) {
      this.window.detach();
    }
    let count = all ? fresh : wanted.reduce((sum, piece) => sum + piece.lines.length, 0);
    if (this.window.at_end) count = this.window.append_live(wanted);
    if (!following) this.new_lines.value += count;
    if (this.window.at_end) this.show(following ? { kind: "end" } : { kind: "keep" });
    return true;
  }

  private lines_behind_view(): number {
    const last = this.last.peek();
    if (!last || !this.viewport) return 0;
    return this.rows.peek().length - this.viewport.find(last);
  }

  // Of the level that is shown; among several logs, those that have a place in time.
  private only_wanted(piece: Live): Live {
    const wanted = (line: Line) =>
      (this.single || line.time_us > 0) &&
      (this.at_least === Level.kNone || level_of(line.text) >= this.at_least);
    return { ...piece, lines: piece.lines.filter(wanted) };
  }

  private show(how: Show): void {
    if (how.kind !== "keep" || this.viewport) this.way = how;
    const lines = this.window.in_order();
    const rows = this.folding && !this.single ? fold(lines) : unfold(lines);
    this.rows.value = rows;
    this.viewport?.show(rows, how);
  }

  private note_facts(facts: Facts): void {
    const old = this.facts.peek();
    const next = { ...old };
    let changed = false;
    for (const [name, value] of Object.entries(facts)) {
      if (value === undefined || (name === "total_lines" && Number(value) <= 0)) continue;
      if (next[name as keyof Facts] !== value) {
        (next as Record<string, unknown>)[name] = value;
        changed = true;
      }
    }
    if (changed) this.facts.value = next;
  }

  private abort_all(): void {
    for (const work of [this.work, this.more.before, this.more.after]) work?.abort();
    this.work = this.more.before = this.more.after = null;
  }

  private failed(error: unknown): void {
    this.error.value = error instanceof Error ? error.message : String(error);
  }
}
