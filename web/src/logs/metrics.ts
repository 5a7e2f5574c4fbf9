// SPDX-License-Identifier: Apache-2.0
import type { RowOptions } from "./row_view";

const kMaxLabel = 14; // characters

// Sizes of what is drawn: of a character, of a row, and of the columns before the text, which are as
// wide as their longest content.
export class Metrics {
  row_height = 20;
  char_width = 7.2;
  private digits = 0;
  private label = 0;

  constructor(private readonly root: HTMLElement) {}

  measure(parent: HTMLElement): void {
    const probe = document.createElement("span");
    probe.className = "probe";
    probe.append("0".repeat(100));
    parent.append(probe);
    const box = probe.getBoundingClientRect();
    this.char_width = box.width / 100 || this.char_width;
    this.row_height = box.height || this.row_height;
    probe.remove();
  }

  note_number(number: number): void {
    const digits = Math.max(3, String(number + 1).length, this.digits);
    if (digits === this.digits) return;
    this.digits = digits;
    this.root.style.setProperty("--digits", `${digits}ch`);
  }

  note_label(characters: number): void {
    if (characters <= this.label) return;
    this.label = characters;
    this.root.style.setProperty("--label", `${Math.min(characters, kMaxLabel)}ch`);
  }

  // How high a wrapped row will about be.
  wrapped_height(text: string, options: RowOptions): number {
    let gutter = 4;
    if (options.numbers) gutter += this.digits + 2;
    if (options.times) gutter += 16;
    if (options.label) gutter += this.label + 2;
    const columns = Math.max(20, this.root.clientWidth / this.char_width - gutter);
    return Math.max(1, Math.ceil(text.length / columns)) * this.row_height;
  }
}
