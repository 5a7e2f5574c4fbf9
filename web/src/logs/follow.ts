// SPDX-License-Identifier: Apache-2.0
// The stream of what is written to the followed logs. A server that is gone is tried again with
// growing pauses, from the cursor of the last message, so that there is no gap and no repeat. A tab
// that is not looked at hangs up: a browser has six connections for all tabs of one server.
import { ApiError, api_url, type Page, type StreamName } from "../api";
import { ranks_text } from "../format";
import { lines_of_page } from "./lines";
import type { Logs } from "./place";
import { SseParser } from "./sse";
import type { Live } from "./window";

export type LinkState = "off" | "connecting" | "open" | "silent" | "lost" | "refused" | "ended";

export interface FollowHandlers {
  on_live(piece: Live, page: Page): void;
  on_skip(log: { rank: number; stream: StreamName }, from: number): void;
  on_link(state: LinkState, why: string): void;
}

const kFirstRetry_ms = 500;
const kLastRetry_ms = 10_000;
const kSilent_ms = 25_000; // the server says something at least every 15 s
const kGiveUp_ms = 60_000;
const kHidden_ms = 10_000;

export class Follower {
  private abort: AbortController | null = null;
  private cursor = "";
  private tries = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private watch: ReturnType<typeof setTimeout> | undefined;
  private hidden: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(
    private readonly logs: Logs,
    private readonly tail: number,
    private readonly handlers: FollowHandlers,
  ) {
    document.addEventListener("visibilitychange", this.on_visibility);
    addEventListener("online", this.hurry);
    this.connect();
  }

  close(): void {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.on_visibility);
    removeEventListener("online", this.hurry);
    clearTimeout(this.hidden);
    this.hang_up();
  }

  hurry = (): void => {
    if (this.abort === null && !this.closed) this.connect();
  };

  private on_visibility = (): void => {
    clearTimeout(this.hidden);
    if (document.hidden) {
      this.hidden = setTimeout(() => {
        this.hang_up();
        this.handlers.on_link("off", "");
      }, kHidden_ms);
    } else {
      this.hurry();
    }
  };

  private hang_up(): void {
    clearTimeout(this.retry);
    clearTimeout(this.watch);
    this.abort?.abort();
    this.abort = null;
  }

  private connect(): void {
    this.hang_up();
    const abort = new AbortController();
    this.abort = abort;
    this.handlers.on_link(this.tries === 0 ? "connecting" : "lost", "");
    this.read(abort.signal).then(
      () => this.lost(abort, "the server ended the stream"),
      (error: unknown) => this.failed(abort, error),
    );
  }

  private async read(signal: AbortSignal): Promise<void> {
    const { attempt, ranks, streams } = this.logs;
    const url = api_url("/api/v1/follow", {
      attempt,
      ranks: ranks_text(ranks),
      streams: streams.join(","),
      tail: this.tail,
    });
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.cursor) headers["Last-Event-ID"] = this.cursor;
    const response = await fetch(url, { signal, headers, cache: "no-store" });
    if (!response.ok || !response.body) throw new ApiError(response.status, await reason(response));
    this.tries = 0;
    this.alive();
    const parser = new SseParser((message) => {
      if (!signal.aborted) this.take(message.event, message.id, message.data);
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      this.alive();
      parser.push(value);
    }
  }

  private take(event: string, id: string, data: string): void {
    if (event === "lines" || event === "open") {
      const page = JSON.parse(data) as Page;
      this.handlers.on_live(
        {
          rank: page.rank,
          stream: page.stream,
          offset: page.offset,
          end: page.end,
          lines: lines_of_page(page),
        },
        page,
      );
    } else if (event === "skip") {
      const skip = JSON.parse(data) as { rank: number; stream: StreamName; from: number };
      this.handlers.on_skip(skip, skip.from);
    }
    if (id) this.cursor = id;
    if (event === "end") {
      // Nothing can be written to these logs any more.
      this.close();
      this.handlers.on_link("ended", "");
    }
  }

  // Something came. A server that is stopped keeps its connections and says nothing; a longer
  // silence is told to the reader, and after a minute a new connection is tried.
  private alive(): void {
    clearTimeout(this.watch);
    this.handlers.on_link("open", "");
    this.watch = setTimeout(() => {
      this.handlers.on_link("silent", "");
      this.watch = setTimeout(() => {
        if (this.abort) this.lost(this.abort, "the server says nothing");
      }, kGiveUp_ms - kSilent_ms);
    }, kSilent_ms);
  }

  private failed(abort: AbortController, error: unknown): void {
    if (abort !== this.abort) return;
    const refused =
      error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
    if (!refused) return this.lost(abort, "the server cannot be reached");
    this.hang_up();
    this.handlers.on_link("refused", error.message);
    // A rank that does not exist yet may come.
    if (error.status === 404) this.retry = setTimeout(() => this.connect(), kLastRetry_ms);
    else this.closed = true;
  }

  private lost(abort: AbortController, why: string): void {
    if (abort !== this.abort) return;
    this.hang_up();
    this.handlers.on_link("lost", why);
    const delay = Math.min(kLastRetry_ms, kFirstRetry_ms * 2 ** Math.min(this.tries++, 8));
    this.retry = setTimeout(() => this.connect(), delay);
  }
}

async function reason(response: Response): Promise<string> {
  try {
    const body = (await response.json()) as { error?: { message?: string } };
    return body.error?.message ?? `the server answered ${response.status}`;
  } catch {
    return `the server answered ${response.status}`;
  }
}
