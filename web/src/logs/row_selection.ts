// SPDX-License-Identifier: Apache-2.0
// Selecting with the mouse over rows that exist only while they can be seen. The rows in which the
// selection begins and ends are kept, and copying takes the text of those between from the lines, so
// that it is whole, and without numbers, times and ranks.
import { plain_text } from "./ansi";
import type { Line } from "./lines";

export class RowSelection {
  constructor(
    private readonly canvas: HTMLElement,
    private readonly line_of: (node: Node | null) => Line | null,
    private readonly rows: () => readonly Line[],
  ) {
    document.addEventListener("copy", this.on_copy);
  }

  close(): void {
    document.removeEventListener("copy", this.on_copy);
  }

  // Where the selection begins and ends.
  ends(): Line[] {
    const selection = getSelection();
    if (!selection || selection.isCollapsed) return [];
    return [selection.anchorNode, selection.focusNode]
      .map((node) => this.line_of(node))
      .filter((line): line is Line => line !== null);
  }

  text(): string | null {
    const selection = getSelection();
    if (!selection || selection.isCollapsed || selection.rangeCount === 0) return null;
    const range = selection.getRangeAt(0);
    const first = this.line_of(range.startContainer);
    const last = this.line_of(range.endContainer);
    if (!first || !last) return null;
    const rows = this.rows();
    const from = rows.indexOf(first);
    const to = rows.indexOf(last);
    if (from < 0 || to < from) return null;
    const texts = rows.slice(from, to + 1).map((line) => copied_text(line));
    const end = text_place(range.endContainer, range.endOffset);
    texts[texts.length - 1] = texts.at(-1)!.slice(0, end);
    texts[0] = texts[0]!.slice(text_place(range.startContainer, range.startOffset));
    // A triple click ends at the beginning of the next row.
    if (texts.length > 1 && end === 0) texts[texts.length - 1] = "";
    return texts.join("\n");
  }

  private on_copy = (event: ClipboardEvent): void => {
    const selection = getSelection();
    if (!selection?.anchorNode || !this.canvas.contains(selection.anchorNode)) return;
    const text = this.text();
    if (text === null || !event.clipboardData) return;
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
}

export function copied_text(line: Line): string {
  return line.notice ? "" : plain_text(line.text + line.more);
}

// How many characters of a row's text are before a place in it.
function text_place(node: Node, offset: number): number {
  const element = node instanceof Element ? node : node.parentElement;
  const row = element?.closest(".row");
  const text = row?.querySelector(":scope > .x");
  if (!row || !text) return 0;
  const range = document.createRange();
  range.selectNodeContents(text);
  const at = range.comparePoint(node, offset);
  if (at < 0) return 0;
  if (at === 0) range.setEnd(node, offset);
  return range.toString().length;
}
