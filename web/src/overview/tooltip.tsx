// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Facts } from "./rank_facts";

export interface TipPlace {
  rank: number;
  x: number; // the middle of what it is about, in the window
  top: number;
  bottom: number;
}

// Says by sight what the screen reader is told otherwise. Above its place, or below where there is
// no room.
export function Tooltip({
  place,
  title,
  host,
  facts,
}: {
  place: TipPlace;
  title: string;
  host: string;
  facts: Facts;
}) {
  const element = useRef<HTMLDivElement>(null);
  const [at, set_at] = useState({ left: 0, top: 0 });
  useLayoutEffect(() => {
    const box = element.current?.getBoundingClientRect();
    if (!box) return;
    const left = Math.min(innerWidth - box.width - 8, Math.max(8, place.x - box.width / 2));
    const above = place.top - box.height - 8;
    set_at({ left, top: above < 48 ? place.bottom + 8 : above });
  }, [place.rank, place.x, place.top, facts.length]);
  return (
    <div
      ref={element}
      class="tooltip"
      aria-hidden="true"
      style={{ left: `${at.left}px`, top: `${at.top}px` }}
    >
      <p>
        <strong>{title}</strong> <span class="muted foreign">{host}</span>
      </p>
      <dl>
        {facts.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd class="foreign">{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
