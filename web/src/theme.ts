// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's choice until the reader makes one, which this browser keeps.
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const kStorageKey = "muster-theme";

export const theme = signal<Theme>("auto");
const dark_system = () => matchMedia("(prefers-color-scheme: dark)").matches;
export const is_dark = signal(false);

function show(): void {
  const dark = theme.value === "dark" || (theme.value === "auto" && dark_system());
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  is_dark.value = dark;
}

// A browser may refuse storage; the choice then lasts as long as the page.
function stored(): Theme {
  try {
    const value = localStorage.getItem(kStorageKey);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export function set_theme(next: Theme): void {
  theme.value = next;
  try {
    localStorage.setItem(kStorageKey, next);
  } catch {
    // See stored().
  }
  show();
}

export function toggle_theme(): void {
  set_theme(is_dark.peek() ? "light" : "dark");
}

export function start_theme(): void {
  theme.value = stored();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
