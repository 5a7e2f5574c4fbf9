// SPDX-License-Identifier: Apache-2.0
import { signal } from "@preact/signals";
import { Dialog } from "./dialog";
import { key_sections, working_bindings, type KeyBinding } from "./keyboard";

export const help_open = signal(false);

const kNames: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  PageUp: "Page up",
  PageDown: "Page down",
};

function Keys({ binding }: { binding: KeyBinding }) {
  const ways = Array.isArray(binding.keys) ? binding.keys : [binding.keys];
  return (
    <dt>
      {ways.map((way, i) => (
        <>
          {i > 0 && " or "}
          {way.split(/[ ]/).map((key) => (
            <kbd>
              {key
                .split(/\+(?=.)/)
                .map((part) => kNames[part] ?? part)
                .join(" ")}
            </kbd>
          ))}
        </>
      ))}
    </dt>
  );
}

// What the keys do that work now. Sections of the same title are shown as one.
export function Help() {
  if (!help_open.value) return null;
  const titles = [...new Set(key_sections.value.map((section) => section.title))];
  const works = working_bindings(key_sections.value);
  return (
    <Dialog title="Keys" on_close={() => (help_open.value = false)}>
      <div class="help-sections">
        {titles.map((title) => {
          const bindings = key_sections.value
            .filter((section) => section.title === title)
            .flatMap((section) => section.bindings)
            .filter((binding) => !binding.hidden && works.has(binding));
          return (
            bindings.length > 0 && (
              <section>
                <h3>{title}</h3>
                <dl class="keys">
                  {bindings.map((binding) => (
                    <div>
                      <Keys binding={binding} />
                      <dd>{binding.label}</dd>
                    </div>
                  ))}
                </dl>
              </section>
            )
          );
        })}
      </div>
    </Dialog>
  );
}
