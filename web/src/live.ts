// SPDX-License-Identifier: Apache-2.0
// Keeps the model up to date through the event stream. A server that is gone is tried again with
// growing pauses; meanwhile the page keeps what it has and says since when.
import { signal } from "@preact/signals";
import type { ChangeMessage, SamplesMessage, StateMessage } from "./api";
import { parse_inert } from "./inert";
import { apply_change, apply_samples, apply_state, kNothing, type Model } from "./model";

export type LinkState = "connecting" | "open" | "lost";

export interface Link {
  state: LinkState;
  last_contact: number | null; // milliseconds, this browser's clock
  retry_at: number | null;
  attempts: number; // tries since the last contact
}

export const kFirstRetryMs = 500;
export const kLongestRetryMs = 15_000;
// A stopped process or a lost network closes no connection; who is silent for long is asked.
export const kSilenceMs = 10_000;
export const kProbeMs = 5_000;
export const kHiddenMs = 10_000; // after which a hidden tab gives its connection back

export function retry_delay_ms(tries: number): number {
  return Math.min(kLongestRetryMs, kFirstRetryMs * 2 ** Math.min(tries, 10));
}

export const model = signal<Model>(kNothing);
const kNoLink: Link = { state: "connecting", last_contact: null, retry_at: null, attempts: 0 };
export const link = signal<Link>(kNoLink);

// What the server's clock shows, less ours, in microseconds. Times of the job are of its clock.
let clock_offset_us = 0;
export const server_now_us = (): number => Date.now() * 1_000 + clock_offset_us;

// The part of EventSource that is used, so that a test can stand in for it.
export interface Source {
  readonly readyState: number;
  onopen: ((event: Event) => void) | null;
  onerror: ((event: Event) => void) | null;
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void;
  close(): void;
}
export type OpenSource = (url: string) => Source;

// Where the stream was, so that a new connection goes on from there. EventSource itself sends the
// id only when it reconnects by itself, which it does not after every error.
let last_id = "";
let source: Source | null = null;
// At most one call that is still to come.
class Later {
  private timer: ReturnType<typeof setTimeout> | undefined;

  set(delay_ms: number, call: () => void): void {
    this.clear();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      call();
    }, delay_ms);
  }

  clear(): void {
    if (this.timer !== undefined) clearTimeout(this.timer);
    this.timer = undefined;
  }
}

const retry = new Later();
const silence = new Later();
const hiding = new Later();
let open_source: OpenSource = (url) => new EventSource(url) as unknown as Source;
let is_alive = async (): Promise<boolean> =>
  (await fetch("/healthz", { signal: AbortSignal.timeout(kProbeMs), cache: "no-store" })).ok;

async function probe(): Promise<void> {
  const asked = source;
  const alive = await is_alive().catch(() => false);
  if (asked !== source) return;
  if (alive && link.peek().state === "open") expect_more();
  else lost();
}

// A finished run that is shown from its files has nothing more to say.
function expect_more(): void {
  silence.clear();
  if (link.peek().state === "open" && !model.peek().job?.live) return;
  silence.set(kSilenceMs, () => void probe());
}

function contact(): void {
  const was = link.peek();
  if (was.state === "open" && was.last_contact !== null && Date.now() - was.last_contact < 1_000)
    return;
  link.value = { state: "open", last_contact: Date.now(), retry_at: null, attempts: 0 };
}

function note_clock(now_us: number | undefined): void {
  if (now_us) clock_offset_us = now_us - Date.now() * 1_000;
}

function take<Message>(from: Source, apply: (message: Message, old: Model) => Model) {
  return (event: MessageEvent<string>) => {
    if (from !== source) return;
    let message: Message;
    try {
      message = parse_inert<Message>(event.data);
    } catch {
      return; // cut off
    }
    if (event.lastEventId) last_id = event.lastEventId;
    contact();
    model.value = apply(message, model.peek());
    expect_more();
  };
}

function lost(): void {
  source?.close();
  source = null;
  const { last_contact, attempts } = link.peek();
  const delay = retry_delay_ms(attempts);
  link.value = {
    state: "lost",
    last_contact,
    retry_at: Date.now() + delay,
    attempts: attempts + 1,
  };
  silence.clear();
  retry.set(delay, connect);
}

// A browser has few connections for one server, and other tabs may be looked at.
export function pause(): void {
  retry.clear();
  silence.clear();
  source?.close();
  source = null;
}

export function connect(): void {
  retry.clear();
  source?.close();
  const query = last_id ? `&last_event_id=${encodeURIComponent(last_id)}` : "";
  const opened = open_source(`/api/v1/events?stream=1${query}`);
  source = opened;
  expect_more();
  opened.onopen = () => {
    if (opened !== source) return;
    contact();
    expect_more();
  };
  opened.onerror = () => {
    if (opened === source) lost();
  };
  opened.addEventListener(
    "state",
    take<StateMessage>(opened, (message, old) => {
      note_clock(message.job.now_us);
      return apply_state(message, old);
    }),
  );
  opened.addEventListener(
    "change",
    take<ChangeMessage>(opened, (message, old) => {
      note_clock(message.job?.now_us);
      return apply_change(message, old);
    }),
  );
  opened.addEventListener(
    "samples",
    take<SamplesMessage>(opened, (message, old) => apply_samples(message.samples, old)),
  );
}

export function start_live(
  open: OpenSource = open_source,
  alive: () => Promise<boolean> = is_alive,
): void {
  open_source = open;
  is_alive = alive;
  last_id = "";
  link.value = kNoLink;
  connect();
  // The network came back: no reason to wait any longer.
  const hurry = () => {
    if (link.peek().state === "lost") connect();
  };
  globalThis.addEventListener?.("online", hurry);
  globalThis.document?.addEventListener("visibilitychange", () => {
    hiding.clear();
    if (document.visibilityState === "hidden") {
      hiding.set(kHiddenMs, pause);
    } else if (!source) {
      connect();
    }
  });
}
