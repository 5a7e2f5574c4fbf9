// SPDX-License-Identifier: Apache-2.0
// The bar at the right: where in the whole log the view is, and a way to any place of it. The
// element's own scroll bar would tell of the loaded lines alone. Everything that it does has a key
// too, so it is not told to screen readers.

export class Rail {
  private readonly thumb: HTMLElement;
  private dragging = false;
  private grab = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly on_drag: (share: number) => void,
  ) {
    this.thumb = document.createElement("div");
    this.thumb.className = "thumb";
    root.append(this.thumb);
    root.addEventListener("pointerdown", this.on_down);
    root.addEventListener("pointermove", this.on_move);
    root.addEventListener("pointerup", this.on_up);
    root.addEventListener("pointercancel", this.on_up);
  }

  close(): void {
    this.root.replaceChildren();
    this.root.removeEventListener("pointerdown", this.on_down);
    this.root.removeEventListener("pointermove", this.on_move);
    this.root.removeEventListener("pointerup", this.on_up);
    this.root.removeEventListener("pointercancel", this.on_up);
  }

  // `at`: what share of the log is before the view; `size`: what share is in view.
  show(at: number, size: number): void {
    this.root.classList.toggle("all", size >= 1);
    if (!this.dragging) this.place(at, size);
  }

  set_ticks(shares: readonly number[]): void {
    for (const tick of [...this.root.querySelectorAll(".tick")]) tick.remove();
    const seen = new Set<number>();
    for (const share of shares) {
      const place = Math.round(share * 300);
      if (seen.has(place)) continue;
      seen.add(place);
      const tick = document.createElement("div");
      tick.className = "tick";
      tick.style.top = `${place / 3}%`;
      this.root.append(tick);
    }
  }

  private place(at: number, size: number): void {
    const height = this.root.clientHeight;
    const length = Math.max(24, size * height);
    this.thumb.style.height = `${length}px`;
    this.thumb.style.transform = `translateY(${Math.min(1, Math.max(0, at)) * Math.max(0, height - length)}px)`;
  }

  private share_of(event: PointerEvent): number {
    const box = this.root.getBoundingClientRect();
    const room = Math.max(1, box.height - this.thumb.offsetHeight);
    return Math.min(1, Math.max(0, (event.clientY - box.top - this.grab) / room));
  }

  private on_down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const thumb = this.thumb.getBoundingClientRect();
    const on_thumb = event.clientY >= thumb.top && event.clientY <= thumb.bottom;
    this.grab = on_thumb ? event.clientY - thumb.top : thumb.height / 2;
    this.dragging = true;
    this.root.setPointerCapture(event.pointerId);
    event.preventDefault();
    if (!on_thumb) this.on_move(event);
  };

  private on_move = (event: PointerEvent): void => {
    if (!this.dragging) return;
    const share = this.share_of(event);
    const room = this.root.clientHeight - this.thumb.offsetHeight;
    this.thumb.style.transform = `translateY(${share * room}px)`;
    this.on_drag(share);
  };

  private on_up = (event: PointerEvent): void => {
    this.dragging = false;
    if (this.root.hasPointerCapture(event.pointerId)) this.root.releasePointerCapture(event.pointerId);
  };
}
