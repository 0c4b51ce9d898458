// Numbers and tokens as text.
import { data } from "./data";
import { state } from "./state";

/** A number with the chosen decimals; smaller ones, that would all be 0.0000, with an exponent. */
export function format(value: number | undefined, digits = state.digits): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  const small = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  const large = Math.abs(value) >= 1e7;
  const text = small || large ? value.toExponential(Math.max(digits - 1, 0)) : value.toFixed(digits);
  return text.replace(/-/g, "−");
}
export const percent = (p: number): string => `${format(100 * p, 2)} %`;
/** Blanks and line ends of a token made visible. */
export function visible(text: string): string {
  if (text === "") return "∅";
  return text.replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥");
}
export const tokenText = (position: number): string => visible(data.tokens[position].text);
export function bytesText(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let i = 0;
  while (n >= 1024 && i < 3) { n /= 1024; i++; }
  return `${i === 0 ? n : n.toFixed(1)} ${units[i]}`;
}
/** As program text: the shortest digits that name the same float32. */
export function exactly(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "np.inf" : "-np.inf";
  for (let p = 6; p <= 9; p++) {
    const text = Number(value.toPrecision(p));
    if (Math.fround(text) === value) return String(text);
  }
  return String(value);
}
