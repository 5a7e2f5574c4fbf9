// SPDX-License-Identifier: Apache-2.0
// Any colour of a log, made readable on either theme: it is mixed with white or black just so far
// that its contrast with the page's background is enough for text (WCAG AA).

const kEnough = 4.6;

type Rgb = [number, number, number];

function parts(rgb: number): Rgb {
  return [(rgb >> 16) & 255, (rgb >> 8) & 255, rgb & 255];
}

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: number, b: number): number {
  const [x, y] = [luminance(parts(a)), luminance(parts(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

export function readable(rgb: number, background: number): number {
  const towards = luminance(parts(background)) < 0.18 ? 255 : 0;
  let best = rgb;
  for (let share = 0; share <= 1; share += 0.1) {
    const mixed = parts(rgb).map((value) => Math.round(value + (towards - value) * share)) as Rgb;
    best = mixed[0] * 0x10000 + mixed[1] * 0x100 + mixed[2];
    if (contrast(best, background) >= kEnough) break;
  }
  return best;
}

// Black or white, whichever is read better.
export function text_on(background: number): number {
  return contrast(0, background) > contrast(0xffffff, background) ? 0 : 0xffffff;
}

export function css(rgb: number): string {
  return "#" + (rgb & 0xffffff).toString(16).padStart(6, "0");
}
