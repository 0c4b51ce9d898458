// A number of the run on the page: shown with the chosen digits, and a press opens its hand calculation.
import { placeName, read } from "./data";
import { h } from "./dom";
import { format } from "./format";
import { openCalculation } from "./panel";

export function num(name: string, index: number[], digits?: number): HTMLElement {
  const value = read(name, index);
  const place = placeName(name, index);
  if (value === undefined) return h("span", { class: "num none" }, "–");
  return h("button", {
    type: "button", class: value < 0 ? "num minus" : "num", "data-at": place, "data-key": place, "aria-label": `${place} = ${format(value, digits)}`,
    onclick: () => openCalculation(name, index),
  }, format(value, digits));
}
/** A number the page worked out from numbers of the run, or a weight. */
export const derived = (value: number, digits?: number): HTMLElement => h("span", { class: "num derived" }, format(value, digits));
