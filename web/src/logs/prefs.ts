// SPDX-License-Identifier: Apache-2.0
// How this browser likes its logs.
import { signal } from "@preact/signals";

export interface Prefs {
  wrap: boolean;
  times: boolean;
  fold: boolean;
}

const kStorageKey = "muster-logs";

// Narrow screens wrap: nobody wants to scroll two ways there.
function read(): Prefs {
  const start: Prefs = { wrap: matchMedia("(max-width: 640px)").matches, times: false, fold: true };
  try {
    const kept = JSON.parse(localStorage.getItem(kStorageKey) ?? "{}") as Partial<
      Record<keyof Prefs, unknown>
    >;
    for (const name of Object.keys(start) as (keyof Prefs)[]) {
      if (typeof kept[name] === "boolean") start[name] = kept[name];
    }
  } catch {
    // No storage, or not ours: the defaults.
  }
  return start;
}

export const prefs = signal<Prefs>(read());

export function toggle_pref(name: keyof Prefs): void {
  prefs.value = { ...prefs.peek(), [name]: !prefs.peek()[name] };
  try {
    localStorage.setItem(kStorageKey, JSON.stringify(prefs.peek()));
  } catch {
    // Then it lasts as long as the page.
  }
}
