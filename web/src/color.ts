// Colours for signed and for positive numbers. Blue and orange: told apart by every kind of colour vision.
export interface Scale { limit: number; outliers: number[]; color: (value: number) => string; signed: boolean }

const kStops = {
  light: { zero: [247, 246, 242], plus: [194, 86, 8], minus: [28, 98, 171] },
  dark: { zero: [30, 36, 42], plus: [250, 158, 74], minus: [96, 170, 246] },
};
export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/**
 * The range is that of 98 % of the values, so that a few giants do not turn everything else grey; the giants are listed.
 */
export function robustScale(values: ArrayLike<number>): Scale {
  const finite: { size: number; at: number }[] = [];
  let signed = false;
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    finite.push({ size: Math.abs(values[i]), at: i });
    if (values[i] < 0) signed = true;
  }
  const sorted = Float64Array.from(finite, (f) => f.size).sort();
  const limit = sorted.length ? sorted[Math.floor(0.98 * (sorted.length - 1))] || sorted[sorted.length - 1] || 1 : 1;
  const outliers = finite.filter((f) => f.size > 2 * limit).sort((a, b) => b.size - a.size).map((f) => f.at);
  const stops = isDark() ? kStops.dark : kStops.light;
  const color = (value: number): string => {
    if (!Number.isFinite(value)) return isDark() ? "#11161b" : "#d9d7d0";
    const part = Math.min(Math.abs(value) / limit, 1) ** 0.8;
    const end = value < 0 ? stops.minus : stops.plus;
    return `rgb(${stops.zero.map((z, i) => Math.round(z + (end[i] - z) * part)).join(",")})`;
  };
  return { limit, outliers, color, signed };
}
