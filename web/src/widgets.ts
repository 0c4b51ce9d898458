// Pictures and tables of values, all with the keyboard's way in and a table for those who do not see the picture.
import { config, data, nTokens, point, weight } from "./data";
import { robustScale } from "./color";
import { h } from "./dom";
import type { Series } from "./drawings";
import { format, tokenText } from "./format";
import { openCalculation } from "./panel";
import { derived, num } from "./number";
import { L, change, state } from "./state";

export const p = (...children: Parameters<typeof h>[2][]): HTMLElement => h("p", {}, ...children);
export const figure = (caption: string, ...children: Parameters<typeof h>[2][]): HTMLElement => h("figure", {}, ...children, h("figcaption", {}, caption));
export const note = (zh: string, en: string): HTMLElement => h("p", { class: "note" }, L(zh, en));

/** A choice of one of a few. */
export function choose<T extends string | number>(label: string, options: [T, string][], now: T, act: (value: T) => void): HTMLElement {
  return h("label", { class: "choose" }, label, " ", h("select", { "data-key": `choose ${label}`, onchange: (e: Event) => act(options[(e.target as HTMLSelectElement).selectedIndex][0]) },
    options.map(([value, text]) => h("option", { selected: value === now }, text))));
}
export const chooseHead = (): HTMLElement => choose(L("注意力头", "head"), Array.from({ length: config.n_heads }, (_, i) => [i, String(i)] as [number, string]), state.head, (head) => change({ head }));

/** What a cell of a picture is. */
export interface Cells {
  rows: string[]; columns: number; label: (column: number) => string;
  value: (row: number, column: number) => number; place?: (row: number, column: number) => [string, number[]];
}
const kHeight = 22;

const opened = new Set<string>();
/** The same values as a table, for those who do not see the picture; made when it is opened. */
export function asTable(key: string, make: () => HTMLElement): HTMLElement {
  const details = h("details", { class: "astable", open: opened.has(key) }, h("summary", { "data-key": `table ${key}` }, L("看成表格", "as a table")));
  const show = (): void => { if (details.open && details.childNodes.length === 1) details.append(make()); };
  details.addEventListener("toggle", () => { if (details.open) opened.add(key); else opened.delete(key); show(); });
  show();
  return details;
}
export const seriesTable = (series: Series[]): HTMLElement => table([L("层", "storey"), ...series.map((s) => s.title)], series[0].values.map((_, i) => [String(i), ...series.map((s) => derived(s.values[i]))]));


/** A matrix as colours. Arrow keys move from cell to cell; Enter works the number out. */
export function heat(name: string, cells: Cells, rowHeight = kHeight): HTMLElement {
  const { rows, columns } = cells;
  const values = new Float64Array(rows.length * columns);
  for (let r = 0; r < rows.length; r++) for (let c = 0; c < columns; c++) values[r * columns + c] = cells.value(r, c);
  const scale = robustScale(values);
  const pixel = Math.max(1, Math.min(rowHeight, Math.floor(680 / columns)));
  const canvas = h("canvas", { width: columns * pixel, height: rows.length * rowHeight, tabindex: 0, role: "application", "data-key": `heat ${name}`,
    "aria-label": L(`${name}：${rows.length} 行 ${columns} 列的色块图。方向键移动，回车看手算`, `${name}: picture of ${rows.length} by ${columns} values. Arrow keys move, Enter shows the calculation`) });
  canvas.style.aspectRatio = `${columns * pixel} / ${rows.length * rowHeight}`;
  if (columns * pixel < 300) canvas.style.width = `${columns * pixel}px`;
  const readout = h("output", { class: "readout", "aria-live": "polite" }, L("指向一格，或用方向键", "point at a cell, or use the arrow keys"));
  let at: [number, number] = [Math.min(state.token, rows.length - 1), 0];
  const paint = (): void => {
    const g = canvas.getContext("2d")!;
    for (let r = 0; r < rows.length; r++) for (let c = 0; c < columns; c++) {
      g.fillStyle = scale.color(values[r * columns + c]);
      g.fillRect(c * pixel, r * rowHeight, pixel, rowHeight - (rowHeight > 6 ? 1 : 0));
    }
  };
  const show = (r: number, c: number, mark = true): void => {
    at = [r, c];
    paint();
    if (mark) {
      const g = canvas.getContext("2d")!;
      g.lineWidth = 2; g.strokeStyle = getComputedStyle(document.body).color;
      g.strokeRect(c * pixel - 1, r * rowHeight, pixel + 2, rowHeight - 1);
    }
    const place = cells.place?.(r, c);
    readout.replaceChildren(`${rows[r]} · ${cells.label(c)}: `, place ? num(...place) : derived(values[r * columns + c]));
  };
  const cellOf = (e: PointerEvent | MouseEvent): [number, number] => {
    const box = canvas.getBoundingClientRect();
    return [Math.min(rows.length - 1, Math.max(0, Math.floor((e.clientY - box.top) / box.height * rows.length))),
      Math.min(columns - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * columns)))];
  };
  canvas.addEventListener("pointermove", (e) => show(...cellOf(e)));
  canvas.addEventListener("click", (e) => { const [r, c] = cellOf(e); show(r, c); const place = cells.place?.(r, c); if (place) openCalculation(...place); });
  canvas.addEventListener("focus", () => show(...at));
  canvas.addEventListener("keydown", (e) => {
    const move: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageDown: [0, 16], PageUp: [0, -16] };
    const step = move[e.key];
    if (step) { e.preventDefault(); e.stopPropagation(); show(Math.min(Math.max(at[0] + step[0], 0), rows.length - 1), Math.min(Math.max(at[1] + step[1], 0), columns - 1)); }
    if (e.key === "Enter") { const place = cells.place?.(...at); if (place) openCalculation(...place); }
  });
  paint();
  const labels = h("div", { class: "rowlabels", "aria-hidden": "true" }, rows.map((row) => { const s = h("span", {}, row); s.style.height = `${100 / rows.length}%`; return s; }));
  const outliers = scale.outliers.slice(0, 8);
  return h("div", { class: "heat" }, h("div", { class: "picture" }, rowHeight >= 14 && labels, canvas), legend(scale.limit, scale.signed), readout,
    outliers.length > 0 && h("p", { class: "outliers" }, L(`超出色阶两倍的有 ${scale.outliers.length} 个：`, `${scale.outliers.length} beyond twice the colour range: `),
      outliers.map((i) => { const r = Math.floor(i / columns), c = i % columns, place = cells.place?.(r, c); return h("span", { class: "outlier" }, `${rows[r]} · ${cells.label(c)} `, place ? num(...place) : derived(values[i])); })),
    asTable(name, () => vectors(columns, rows.map((row, r) => ({ title: row, cell: (c: number) => { const place = cells.place?.(r, c); return place ? num(...place) : derived(values[r * columns + c]); } })), `table ${name}`)));
}
function legend(limit: number, signed: boolean): HTMLElement {
  return h("div", { class: "legend", "aria-hidden": "true" }, h("span", {}, signed ? format(-limit, 2) : "0"), h("i", { class: signed ? "bar signed" : "bar" }), h("span", {}, format(limit, 2)));
}

/** A point [n_tokens, width], one row per token. */
export function heatOfPoint(name: string): HTMLElement | null {
  const x = point(name);
  if (!x || x.shape.length !== 2 || x.shape[0] !== nTokens) return null;
  return heat(name, { rows: data.tokens.map((_, i) => tokenText(i)), columns: x.shape[1], label: (c) => `${L("第", "dim")} ${c}${L(" 维", "")}`, value: (r, c) => x.get(r, c), place: (r, c) => [name, [r, c]] });
}
/** One head of a point [n_tokens, heads, width]. */
export function heatOfHead(name: string, head: number): HTMLElement | null {
  const x = point(name);
  if (!x) return null;
  return heat(`${name} [·, ${head}, ·]`, { rows: data.tokens.map((_, i) => tokenText(i)), columns: x.shape[2], label: (c) => `${L("第", "dim")} ${c}${L(" 维", "")}`, value: (r, c) => x.get(r, head, c), place: (r, c) => [name, [r, head, c]] });
}

export interface Line { title: string; cell: (dim: number) => Node | string }
export const pointLine = (title: string, name: string, before: number[]): Line | null => (point(name) ? { title, cell: (i) => num(name, [...before, i]) } : null);
export function weightLine(title: string, name: string): Line | null {
  const w = weight(name);
  return w && w.shape.length === 1 ? { title, cell: (i) => derived(w.values[i]) } : null;
}
const kWindow = 6;
/** Some dimensions of several vectors under one another; arrows and a field go to others. */
export function vectors(width: number, lines: (Line | null)[], key: string): HTMLElement {
  const first = Math.min(state.firstDim, Math.max(width - kWindow, 0));
  const dims = Array.from({ length: Math.min(kWindow, width) }, (_, i) => first + i);
  const go = (to: number): void => change({ firstDim: Math.min(Math.max(to, 0), Math.max(width - kWindow, 0)) });
  return h("div", { class: "vectors" },
    h("div", { class: "scroll" }, h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, L("维", "dim")), dims.map((i) => h("th", { scope: "col" }, String(i))))),
      h("tbody", {}, lines.filter((line): line is Line => line !== null).map((line) => h("tr", {}, h("th", { scope: "row" }, line.title), dims.map((i) => h("td", {}, line.cell(i)))))))),
    width > kWindow && h("div", { class: "pager" },
      h("button", { type: "button", class: "quiet", "data-key": `${key} back`, "aria-label": L("前几维", "earlier dimensions"), onclick: () => go(first - kWindow) }, "←"),
      h("label", {}, L("从第 ", "from "), h("input", { type: "number", min: 0, max: width - 1, value: first, "data-key": `${key} at`, "aria-label": L("第一维", "first dimension"), onchange: (e: Event) => go(Number((e.target as HTMLInputElement).value)) }), L(` 维，共 ${width} 维`, ` of ${width} dimensions`)),
      h("button", { type: "button", class: "quiet", "data-key": `${key} on`, "aria-label": L("后几维", "later dimensions"), onclick: () => go(first + kWindow) }, "→")));
}

/** A plain table. */
export const table = (head: string[], rows: (Node | string)[][]): HTMLElement => h("div", { class: "scroll" }, h("table", { class: "numbers" },
  h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
  h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, i) => (i === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell))))))));

/** Said where a storey's numbers were not collected. */
export function notDetailed(): HTMLElement {
  return h("div", { class: "absent" }, p(L(`第 ${state.layer} 层只带了残差流、注意力图和透镜。要它的每一个数：`, `Storey ${state.layer} is here with its stream, attention and lens only. For its every number: `), h("code", {}, `liuli tour … --layers ${state.layer}`)),
    p(L("完整的层：", "Storeys in full: "), data.detail.map((layer) => h("button", { type: "button", class: "quiet", "data-key": `go ${layer}`, onclick: () => change({ layer }) }, String(layer)))));
}

export const bar = (value: number, most: number, label: string): HTMLElement => {
  const inner = h("i");
  inner.style.width = `${most > 0 ? Math.min(100, 100 * value / most) : 0}%`;
  return h("span", { class: "meter", role: "img", "aria-label": label }, inner);
};
