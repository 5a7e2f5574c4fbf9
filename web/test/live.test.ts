// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { Job, StateMessage } from "../src/api";
import {
  kLongestRetryMs,
  kSilenceMs,
  link,
  model,
  pause,
  retry_delay_ms,
  start_live,
  type Source,
} from "../src/live";

class FakeSource implements Source {
  readonly readyState = 0;
  onopen: ((event: Event) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  closed = false;
  private readonly listeners = new Map<string, (event: MessageEvent<string>) => void>();
  constructor(readonly url: string) {
    opened.push(this);
  }
  addEventListener(type: string, listener: (event: MessageEvent<string>) => void): void {
    this.listeners.set(type, listener);
  }
  close(): void {
    this.closed = true;
  }
  send(type: string, message: object, id = ""): void {
    this.listeners.get(type)?.({
      data: JSON.stringify(message),
      lastEventId: id,
    } as MessageEvent<string>);
  }
}

let opened: FakeSource[] = [];
let alive = true;
const newest = (): FakeSource => opened.at(-1) as FakeSource;
const state = (seq: number): StateMessage => ({
  seq,
  job: { run_id: "run", attempt: 0, live: true } as Job,
  nodes: [],
  attempts: [],
  ranks: [],
  events: [],
});

beforeEach(() => {
  opened = [];
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  alive = true;
  start_live(
    (url) => new FakeSource(url),
    () => Promise.resolve(alive),
  );
});
afterEach(() => {
  pause();
  mock.timers.reset();
});

test("what arrives is the model, and the connection is open", () => {
  newest().onopen?.({} as Event);
  newest().send("state", state(3), "e-3");
  assert.equal(link.value.state, "open");
  assert.equal(model.value.seq, 3);
});

test("a lost server leaves the model and is asked for what came after the last id", () => {
  newest().send("state", state(3), "e-3");
  newest().onerror?.({} as Event);
  assert.equal(link.value.state, "lost");
  assert.equal(model.value.seq, 3);
  mock.timers.tick(retry_delay_ms(0));
  assert.equal(opened.length, 2);
  assert.match(newest().url, /last_event_id=e-3/);
});

test("the pauses between tries grow up to a limit and start anew after a contact", () => {
  for (let tries = 0; tries < 8; ++tries) {
    newest().onerror?.({} as Event);
    const before = opened.length;
    mock.timers.tick(retry_delay_ms(tries) - 1);
    assert.equal(opened.length, before);
    mock.timers.tick(1);
    assert.equal(opened.length, before + 1);
  }
  assert.equal(retry_delay_ms(50), kLongestRetryMs);
  newest().send("state", state(1));
  assert.equal(link.value.attempts, 0);
});

const turn = () => new Promise<void>((done) => setImmediate(done));

test("a server that is silent and does not answer counts as lost", async () => {
  newest().send("state", state(1), "e-1");
  alive = false;
  mock.timers.tick(kSilenceMs);
  await turn();
  assert.equal(link.value.state, "lost");
  assert.ok(opened[0]?.closed);
});

test("a server that is silent and answers has only nothing to say", async () => {
  newest().send("state", state(1), "e-1");
  mock.timers.tick(kSilenceMs);
  await turn();
  assert.equal(link.value.state, "open");
  alive = false;
  mock.timers.tick(kSilenceMs);
  await turn();
  assert.equal(link.value.state, "lost");
});

test("a connection that is not made in time is tried again", async () => {
  mock.timers.tick(kSilenceMs);
  await turn();
  mock.timers.tick(retry_delay_ms(0));
  assert.equal(opened.length, 2);
});

test("a message of a connection that was given up changes nothing", () => {
  const old = newest();
  old.send("state", state(1), "e-1");
  old.onerror?.({} as Event);
  old.send("change", { seq: 99 });
  assert.equal(model.value.seq, 1);
});
