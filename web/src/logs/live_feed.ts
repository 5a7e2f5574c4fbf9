// SPDX-License-Identifier: Apache-2.0
// What is written to the followed logs, from the stream to the frames in which it is drawn: all that
// came since the last frame is taken at once. Counts it, too.
import { signal } from "@preact/signals";
import type { Page, StreamName } from "../api";
import { Follower, type LinkState } from "./follow";
import { log_key } from "./lines";
import type { Logs } from "./place";
import type { Live } from "./window";

const kFollowTail = 100;
const kMaxPending = 20_000; // lines between two frames
const kRate_ms = 1_000;
const kHiddenFrame_ms = 250; // a hidden tab has no frames

export interface FeedHandlers {
  // Pieces to take in, and how many lines of them are new; false: not yet.
  on_pieces(pieces: readonly Live[], fresh: number): boolean;
  on_page(page: Page): void;
  on_skip(log: { rank: number; stream: StreamName }, from: number): void;
  on_emptied(): void;
}

export class LiveFeed {
  readonly link = signal<{ state: LinkState; why: string }>({ state: "connecting", why: "" });
  readonly lines_per_s = signal(0);
  private readonly follower: Follower;
  private pending: Live[] = [];
  private pending_lines = 0;
  private scheduled = false;
  private sizes = new Map<string, number>();
  private counted = new Map<string, number>(); // by log, up to where lines were counted
  private rate = { since: 0, lines: 0 };
  private calm: ReturnType<typeof setTimeout> | undefined;

  constructor(
    logs: Logs,
    private readonly handlers: FeedHandlers,
  ) {
    this.follower = new Follower(logs, kFollowTail, {
      on_live: (piece, page) => this.on_live(piece, page),
      on_skip: (log, from) => {
        this.flush();
        handlers.on_skip(log, from);
      },
      on_link: (state, why) => {
        this.link.value = { state, why };
      },
    });
  }

  close(): void {
    this.follower.close();
    clearTimeout(this.calm);
    this.pending = [];
  }

  // Gives out what waits. Lines that wait too long because nobody takes them are dropped from the
  // front: whoever takes the rest sees the gap by their offsets.
  flush(): void {
    const pieces = this.pending;
    if (pieces.length === 0) return;
    this.pending = [];
    if (this.handlers.on_pieces(pieces, this.count(pieces))) {
      this.pending_lines = 0;
      return;
    }
    this.pending = pieces;
    while (this.pending_lines > kMaxPending) this.pending_lines -= this.pending.shift()!.lines.length;
  }

  private on_live(piece: Live, page: Page): void {
    const key = log_key(piece);
    // Somebody emptied the log, and its offsets start again.
    const emptied = page.size < (this.sizes.get(key) ?? 0);
    this.sizes.set(key, page.size);
    if (emptied) {
      this.counted.delete(key);
      this.handlers.on_emptied();
      return;
    }
    this.handlers.on_page(page);
    this.pending.push(piece);
    this.pending_lines += piece.lines.length;
    if (this.pending_lines > kMaxPending) this.flush();
    else this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const run = () => {
      this.scheduled = false;
      this.flush();
    };
    if (document.hidden) setTimeout(run, kHiddenFrame_ms);
    else requestAnimationFrame(run);
  }

  private count(pieces: readonly Live[]): number {
    let count = 0;
    for (const piece of pieces) {
      const key = log_key(piece);
      const known = this.counted.get(key);
      if (known !== undefined) {
        for (const line of piece.lines) count += Number(line.ended && line.offset >= known);
      }
      this.counted.set(key, Math.max(piece.end, known ?? 0));
    }
    this.note_rate(count);
    return count;
  }

  private note_rate(lines: number): void {
    const now = performance.now();
    clearTimeout(this.calm);
    this.calm = setTimeout(() => (this.lines_per_s.value = 0), 2 * kRate_ms);
    this.rate.lines += lines;
    if (now - this.rate.since < kRate_ms) return;
    this.lines_per_s.value = Math.round((this.rate.lines * 1_000) / (now - this.rate.since));
    this.rate = { since: now, lines: 0 };
  }
}
