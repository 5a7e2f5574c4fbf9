// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface Props {
  title: string;
  on_close: () => void;
  children: ComponentChildren;
}

// A modal dialog of the browser's own: it keeps the focus inside, takes Escape, and gives the focus
// back where it was.
export function Dialog({ title, on_close, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        on_close();
      }}
      onClick={(event) => {
        if (event.target === element.current) on_close();
      }}
    >
      <div class="dialog-body">
        <header>
          <h2 id={heading}>{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={on_close}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
