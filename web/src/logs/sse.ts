// SPDX-License-Identifier: Apache-2.0
// Event-stream messages from pieces of text. The follow stream is read with fetch, not with
// EventSource, so that a page that cannot keep up leaves bytes in the connection, and the server
// skips instead of this tab's memory growing.

export interface SseMessage {
  event: string;
  id: string;
  data: string;
}

// A message that is longer than this is not one.
export const kMaxMessage = 16_000_000;

export class SseParser {
  private rest = "";
  private event = "";
  private id = "";
  private data: string[] = [];
  private size = 0;

  constructor(private readonly on_message: (message: SseMessage) => void) {}

  push(text: string): void {
    this.rest += text;
    if (this.rest.length > kMaxMessage) throw new Error("a message of the event stream is too long");
    let begin = 0;
    for (;;) {
      const end = this.rest.indexOf("\n", begin);
      if (end < 0) break;
      this.line(this.rest.slice(begin, this.rest[end - 1] === "\r" && end > begin ? end - 1 : end));
      begin = end + 1;
    }
    this.rest = this.rest.slice(begin);
  }

  private line(line: string): void {
    if (line === "") {
      this.dispatch();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a sign of life
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "event") this.event = value;
    else if (name === "id") this.id = value;
    else if (name === "data") {
      this.size += value.length;
      if (this.size > kMaxMessage) throw new Error("a message of the event stream is too long");
      this.data.push(value);
    }
  }

  private dispatch(): void {
    const message = { event: this.event || "message", id: this.id, data: this.data.join("\n") };
    const said = this.data.length > 0;
    this.event = this.id = "";
    this.data = [];
    this.size = 0;
    if (said) this.on_message(message);
  }
}
