// SPDX-License-Identifier: Apache-2.0
// The one place that knows the page's keys: what is registered here works, and is listed by the
// help that "?" opens. The latest registration of a key wins, so that a dialog can take Escape.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface KeyBinding {
  // As KeyboardEvent.key has it, with "Ctrl+", "Alt+", "Shift+" (Shift only where the key itself
  // does not show it: "G", "?"), or two keys one after the other: "g l". Several ways: ["j", "ArrowDown"].
  keys: string | string[];
  label: string;
  run: (event: KeyboardEvent) => void;
  in_inputs?: boolean; // also while text is being typed
  hidden?: boolean; // not worth a line in the help
  passive?: boolean; // only for the help: the widget that has the focus takes it
}

export interface KeySection {
  title: string;
  bindings: KeyBinding[];
}

// Those that work now, in the order in which they were registered.
export const key_sections = signal<readonly KeySection[]>([]);

const kSequenceMs = 1_000; // how long the first key of two is remembered
let pending = "";
let pending_until = 0;

export function key_name(event: KeyboardEvent): string {
  const printable = event.key.length === 1;
  let name = event.key === " " ? "Space" : event.key;
  if (event.shiftKey && !printable) name = `Shift+${name}`;
  if (event.altKey) name = `Alt+${name}`;
  if (event.ctrlKey || event.metaKey) name = `Ctrl+${name}`;
  return name;
}

function takes_text(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) {
    return !["checkbox", "radio", "button", "submit", "range"].includes(target.type);
  }
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}

function all_keys(binding: KeyBinding): string[] {
  return Array.isArray(binding.keys) ? binding.keys : [binding.keys];
}

function find(
  sections: readonly KeySection[],
  name: string,
  typing: boolean,
): KeyBinding | undefined {
  for (let i = sections.length - 1; i >= 0; --i) {
    for (const binding of sections[i]?.bindings ?? []) {
      if (!binding.passive && (!typing || binding.in_inputs) && all_keys(binding).includes(name))
        return binding;
    }
  }
  return undefined;
}

// Those that some key still leads to: a later section may have taken it for itself.
export function working_bindings(sections: readonly KeySection[]): ReadonlySet<KeyBinding> {
  const taken = new Set<string>();
  const works = new Set<KeyBinding>();
  for (const section of [...sections].reverse()) {
    const keys = section.bindings.flatMap((binding) => {
      if (all_keys(binding).some((key) => binding.passive || !taken.has(key))) works.add(binding);
      return binding.passive ? [] : all_keys(binding);
    });
    for (const key of keys) taken.add(key);
  }
  return works;
}

// Whether some two-key binding begins with this key.
function begins_sequence(sections: readonly KeySection[], name: string): boolean {
  return sections.some((section) =>
    section.bindings.some((binding) => all_keys(binding).some((key) => key.startsWith(`${name} `))),
  );
}

export function handle_key(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.key === "Shift") return;
  const typing = takes_text(event.target);
  const name = key_name(event);
  const sections = key_sections.peek();
  const now = Date.now();
  const sequence =
    pending && now < pending_until ? find(sections, `${pending} ${name}`, typing) : undefined;
  pending = "";
  const binding = sequence ?? find(sections, name, typing);
  if (binding) {
    event.preventDefault();
    binding.run(event);
  } else if (!typing && begins_sequence(sections, name)) {
    pending = name;
    pending_until = now + kSequenceMs;
  }
}

export function start_keyboard(): void {
  addEventListener("keydown", (event) => {
    // An open dialog has the keys for itself, Escape above all; only help goes as it came.
    if (document.querySelector("dialog[open]") && event.key !== "?") return;
    handle_key(event);
  });
}

export function register_keys(section: KeySection): () => void {
  key_sections.value = [...key_sections.peek(), section];
  return () => {
    key_sections.value = key_sections.peek().filter((other) => other !== section);
  };
}

// While the component is mounted. The bindings may change with each rendering; their keys and
// labels are those of the first.
export function useKeys(title: string, bindings: KeyBinding[]): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  useEffect(
    () =>
      register_keys({
        title,
        bindings: bindings.map((binding, i) => ({
          ...binding,
          run: (event) => (latest.current[i] ?? binding).run(event),
        })),
      }),
    [title],
  );
}
