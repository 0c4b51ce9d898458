// The panel with a number's hand calculation.
import { Calculation, Piece, calculate } from "./calc";
import { Explanation, data, placeName, point, read, shortName } from "./data";
import { h } from "./dom";
import { exactly, format } from "./format";
import { derived, num } from "./number";
import { L } from "./state";

let opener: string | null = null;
let shown: [string, number[]] | null = null;
const trail: [string, number[]][] = [];

export function command(place: string): string {
  return `liuli explain ${shortName()} --ids ${data.tokens.map((t) => t.id).join(",")} --at '${place}'`;
}
function copyButton(text: string, label: string): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", onclick: () => {
    const done = () => { button.textContent = L("已复制", "copied"); };
    // From disk the clipboard may be closed to scripts: then the text is selected for the reader to copy.
    navigator.clipboard?.writeText(text).then(done, () => select(text)) ?? select(text);
  } }, label);
  return button;
}
function select(text: string): void {
  const area = h("textarea", { class: "copy", rows: 6, "aria-label": L("要复制的文本", "text to copy") });
  area.value = text;
  document.querySelector(".panel .body")?.append(area);
  area.select();
}

const piece = (p: Piece): Node | string => (typeof p === "string" ? p : "v" in p ? derived(p.v) : num(p.name, p.index));
const lines = (all: Piece[][]): HTMLElement => h("ol", { class: "steps" }, all.map((line) => h("li", {}, line.map(piece))));

function agreement(result: number, observed: number, magnitude: number): HTMLElement {
  const difference = result === observed ? 0 : Math.abs(result - observed);
  const share = magnitude > 0 ? difference / magnitude : 0;
  const text = difference === 0 ? L("与运行结果一位不差", "equal to the run's number")
    : share < 1e-5 ? L(`与运行相差 ${difference.toExponential(1)}：单精度的舍入`, `differs from the run by ${difference.toExponential(1)}: rounding of single precision`)
      : L(`与运行相差 ${difference.toExponential(1)}：这里从未舍入的操作数算起，运行时把它们先舍入为 16 位（${data.class} 类）`,
        `differs from the run by ${difference.toExponential(1)}: this starts from unrounded operands, the run rounds them to 16 bits first (${data.class} class)`);
  return h("p", { class: "agree" }, text);
}

function byHand(calc: Calculation): HTMLElement {
  const scale = Math.max(...calc.lines.flat().map((p) => (typeof p === "string" ? 0 : Math.abs("v" in p ? p.v : read(p.name, p.index) ?? 0))).filter(Number.isFinite), Math.abs(calc.observed));
  return h("div", {}, h("p", { class: "formula" }, calc.formula), lines(calc.lines),
    calc.result !== undefined && h("p", { class: "result" }, "= ", derived(calc.result, 7)),
    calc.result !== undefined && agreement(calc.result, calc.observed, scale),
    calc.numpy && copyButton(`import numpy as np\n${calc.numpy}\n`, L("复制为 NumPy", "copy as NumPy")));
}

function operandText(name: string): Node | string {
  const m = name.match(/^(.*)\[([\d,]+)\]$/);
  if (m && point(m[1])) return num(m[1], m[2].split(",").map(Number));
  return "";
}
/** The engine's own account of a product with a matrix: its largest terms, as the class rounded them. */
function byEngine(e: Explanation): HTMLElement {
  const rows = e.terms.map((term) => h("tr", {}, term.operands.map((o) => h("td", {}, h("code", {}, o.name), " ", o.is_point ? operandText(o.name) : derived(o.value),
    o.stored?.code !== undefined && h("small", { class: "stored" }, ` ${o.stored.type}: ${format(o.stored.scale, 6)} × (${o.stored.code} − ${o.stored.offset})${o.stored.minimum ? ` + ${format(o.stored.minimum, 5)}` : ""}`))), h("td", {}, derived(term.value))));
  const rest = e.n_terms - e.terms.length;
  const python = e.terms.map((t) => t.operands.map((o) => exactly(o.used)).join(" * ")).join(" + ");
  return h("div", {}, h("p", { class: "formula" }, e.formula),
    h("div", { class: "scroll" }, h("table", { class: "numbers" }, h("tbody", {}, rows))),
    rest > 0 && h("p", {}, L(`其余 ${rest} 项之和 `, `the other ${rest} terms `), derived(e.rest)),
    e.steps.map((s) => h("p", {}, s.formula, " = ", derived(s.value))),
    h("p", { class: "result" }, "= ", derived(e.recomputed, 7)),
    h("p", { class: "agree" }, L(`双精度重算与运行相差 ${e.difference.toExponential(1)}`, `worked out again in double; differs from the run by ${e.difference.toExponential(1)}`),
      e.rounding && ` (${e.rounding.activations} × ${e.rounding.weights})`),
    copyButton(`${python} + ${e.rest}  # ${e.name}\n`, L("复制为 NumPy", "copy as NumPy")));
}

export function openCalculation(name: string, index: number[], back = false): void {
  if (!shown) opener = placeName(name, index);
  if (shown && !back) trail.push(shown);
  shown = [name, index];
  draw();
  document.querySelector<HTMLElement>(".panel h2")?.focus();
}
export function closePanel(): void {
  shown = null;
  trail.length = 0;
  draw();
  if (opener) document.querySelector<HTMLElement>(`[data-key="${CSS.escape(opener)}"]`)?.focus();
}
export const panelIsOpen = (): boolean => shown !== null;

function draw(): void {
  document.querySelector(".panel")?.remove();
  document.body.classList.toggle("with-panel", shown !== null);
  if (shown) document.body.append(panel(...shown));
}
export const redrawPanel = draw;

function panel(name: string, index: number[]): HTMLElement {
  const place = placeName(name, index), explanation = data.explanations[place], calc = calculate(name, index);
  const general = name.replace(/^blocks\.\d+\./, "blocks.N.").replace(/experts\.\d+\./, "experts.E.");
  return h("aside", { class: "panel", role: "region", "aria-label": L("手算", "hand calculation") },
    h("div", { class: "bar" },
      trail.length > 0 && h("button", { type: "button", class: "quiet", onclick: () => { const [n, i] = trail.pop()!; openCalculation(n, i, true); } }, "← ", L("返回", "back")),
      h("button", { type: "button", class: "quiet close", "aria-label": L("关闭", "close"), onclick: closePanel }, "✕")),
    h("div", { class: "body" },
      h("h2", { tabindex: -1 }, h("code", {}, place)),
      h("p", { class: "value" }, h("span", { class: "big", "data-panel-value": place }, format(read(name, index), 7))),
      data.points[general] && h("p", { class: "what" }, data.points[general]),
      explanation ? byEngine(explanation) : calc ? byHand(calc)
        : h("p", {}, L("它是与一整行权重相乘的结果；那一行太长，没有放进这一页。在终端里问：", "It is a product with a whole row of weights, too long for this page. Ask in a terminal:")),
      h("p", { class: "command" }, h("code", {}, command(place)), copyButton(command(place), L("复制命令", "copy command")))));
}
