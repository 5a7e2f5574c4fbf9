// SPDX-License-Identifier: Apache-2.0
// The search of the log view: hits in the logs that are shown, and stepping through them.
import { signal } from "@preact/signals";
import type { Match } from "./ansi";
import type { Line } from "./lines";
import { is_single, type Logs, type Query } from "./place";
import { HitList, type Progress, run_search } from "./search";

export interface FinderState {
  query: Query | null;
  hits: number;
  at: number; // which one the reader is at; -1: none
  running: boolean;
  share: number; // of the bytes looked at
  truncated: boolean;
  error: string;
}

const kLimit = 5_000;
const kNothing: FinderState = {
  query: null,
  hits: 0,
  at: -1,
  running: false,
  share: 0,
  truncated: false,
  error: "",
};

export class Finder {
  readonly state = signal<FinderState>(kNothing);
  private list: HitList;
  private work: AbortController | null = null;

  constructor(
    private readonly logs: Logs,
    private readonly go_to: (line: Line) => void,
  ) {
    this.list = new HitList(is_single(logs));
  }

  get hits(): readonly Line[] {
    return this.list.lines();
  }

  matches(line: Line): readonly Match[] {
    return this.list.matches(line) ?? [];
  }

  // Shows the first hit at or behind `from` as soon as it is known, or the last one of all.
  start(query: Query, from: Line | null, on_hits: () => void): void {
    this.cancel();
    this.list = new HitList(is_single(this.logs));
    if (query.text === "") {
      this.state.value = kNothing;
      on_hits();
      return;
    }
    this.state.value = { ...kNothing, query, running: true };
    const work = new AbortController();
    this.work = work;
    let shown = false;
    let due = false;
    const show = (final: boolean) => {
      if (work.signal.aborted) return;
      this.change({ hits: this.list.count });
      on_hits();
      if (shown || (from === null && !final)) return;
      // In order of offsets the first hit behind a place stays the first.
      if (!final && !is_single(this.logs)) return;
      let at = from === null ? this.list.count - 1 : this.list.next(from, 1, true);
      if (at < 0 && final) at = this.list.count - 1;
      if (at < 0) return;
      shown = true;
      this.show(at);
    };
    const soon = () => {
      if (due) return;
      due = true;
      setTimeout(() => {
        due = false;
        show(false);
      }, 50);
    };
    const { attempt, ranks, streams } = this.logs;
    run_search(
      query,
      { attempt, ranks, streams, limit: kLimit },
      ({ line }) => {
        this.list.add(line);
        soon();
      },
      (progress) => this.change({ share: share_of(progress) }),
      work.signal,
    ).then(
      (end) => {
        this.change({ running: false, truncated: end.truncated, share: 1 });
        show(true);
      },
      (error: unknown) => {
        if (work.signal.aborted) return;
        this.change({ running: false, error: error instanceof Error ? error.message : String(error) });
      },
    );
  }

  step(direction: 1 | -1, from: Line | null): void {
    if (this.list.count === 0) return;
    let at = this.list.next(from, direction, false);
    if (at < 0) at = direction > 0 ? 0 : this.list.count - 1; // round
    this.show(at);
  }

  cancel(): void {
    this.work?.abort();
    this.work = null;
    if (this.state.peek().running) this.change({ running: false, truncated: true });
  }

  private show(at: number): void {
    this.change({ at });
    const line = this.hits[at];
    if (line) this.go_to(line);
  }

  private change(change: Partial<FinderState>): void {
    this.state.value = { ...this.state.peek(), ...change };
  }
}

export function share_of(progress: Progress): number {
  return progress.total_bytes > 0 ? Math.min(1, progress.bytes / progress.total_bytes) : 0;
}
