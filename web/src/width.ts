// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";

// How wide an element is, in whole pixels; 0 before it is laid out.
export function useWidth() {
  const element = useRef<HTMLDivElement>(null);
  const [width, set_width] = useState(0);
  useLayoutEffect(() => {
    if (!element.current) return;
    // Before the first painting, so that nothing moves when the observer speaks.
    set_width(Math.floor(element.current.clientWidth));
    const observer = new ResizeObserver(([entry]) =>
      set_width(Math.floor(entry?.contentRect.width ?? 0)),
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return { element, width };
}
