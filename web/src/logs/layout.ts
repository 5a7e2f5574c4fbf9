// SPDX-License-Identifier: Apache-2.0
// Which row is where: heights of rows, and their sums, so that a place on the screen leads to a row
// and back. Rows that were not drawn yet have estimated heights.

export class Layout {
  private heights = new Float64Array(0);
  private tops = new Float64Array(1); // tops[i]: where row i begins; the last: the height of all
  private valid = 0; // tops[0..valid] are right
  count = 0;

  reset(count: number, height_of: (index: number) => number): void {
    if (this.heights.length < count) {
      this.heights = new Float64Array(count * 2);
      this.tops = new Float64Array(count * 2 + 1);
    }
    this.count = count;
    for (let i = 0; i < count; ++i) this.heights[i] = height_of(i);
    this.valid = 0;
  }

  // Whether that changed something.
  set_height(index: number, height: number): boolean {
    if (this.heights[index] === height) return false;
    this.heights[index] = height;
    this.valid = Math.min(this.valid, index);
    return true;
  }

  height(index: number): number {
    return this.heights[index] ?? 0;
  }

  top(index: number): number {
    this.update();
    return this.tops[Math.max(0, Math.min(index, this.count))]!;
  }

  total(): number {
    return this.top(this.count);
  }

  // The row at `y`; the nearest one outside, -1 if there is none.
  at(y: number): number {
    this.update();
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1]! <= y) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, this.count - 1);
  }

  private update(): void {
    for (; this.valid < this.count; ++this.valid) {
      this.tops[this.valid + 1] = this.tops[this.valid]! + this.heights[this.valid]!;
    }
  }
}
