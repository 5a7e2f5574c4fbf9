// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";

// Said to who sees it and to who hears it, for a short while.
export const notice = signal("");
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  notice.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (notice.value = ""), 4_000);
}

// Plain HTTP on another machine's address has no navigator.clipboard.
function copy_by_selection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "hidden-text";
  // A modal dialog makes all that is outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export async function copy_text(text: string, what: string): Promise<void> {
  const focused = document.activeElement;
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    done = copy_by_selection(text);
  }
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  announce(done ? `${what} copied` : `the browser did not allow copying`);
}
