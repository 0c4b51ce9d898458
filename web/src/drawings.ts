// Drawn from the model's own plan: the flow of one block, the tower, the clocks, a histogram, curves.
import { config, data } from "./data";
import { h, pressable, svg } from "./dom";
import { format, visible } from "./format";
import { L, change, state } from "./state";

export interface FlowStep { id: string; title: string; kind: "norm" | "branch" | "add" }
/** The steps of a block in their order; where the norms stand is the family's choice. */
export function flowSteps(layer: number): FlowStep[] {
  const plan = config.layers[layer], steps: FlowStep[] = [];
  const norm = (kind: string) => (kind === "rms" ? "RMSNorm" : "LayerNorm");
  const half = (slots: typeof plan.attn_norm, ln: string, branch: string, title: string, sum: string) => {
    if (slots.before !== "none") steps.push({ id: `${ln}.out`, title: norm(slots.before), kind: "norm" });
    steps.push({ id: branch, title, kind: "branch" });
    if (slots.on_output !== "none") steps.push({ id: `${ln}_post.out`, title: norm(slots.on_output), kind: "norm" });
    steps.push({ id: sum, title: "+", kind: "add" });
    if (slots.after_add !== "none") steps.push({ id: `${ln}.out`, title: norm(slots.after_add), kind: "norm" });
  };
  half(plan.attn_norm, "ln1", "attn.out_proj", config.latent ? L("潜变量注意力", "latent attention") : L("注意力", "attention"), "resid_mid");
  half(plan.ffn_norm, "ln2", "mlp.out", plan.routed ? L("混合专家", "mixture of experts") : L("前馈网络", "feed-forward"), "resid_post");
  return steps;
}

/** The flow, upwards as in a tower: the residual lane on the left, the branches on the right. */
export function flow(layer: number, chosen: string, act: (id: string) => void): SVGElement {
  const steps = flowSteps(layer), gap = 54, height = steps.length * gap + 90, lane = 60, mid = 235;
  const y = (i: number): number => height - 60 - i * gap;
  const parts: SVGElement[] = [];
  const line = (x1: number, y1: number, x2: number, y2: number, cls: string) => parts.push(svg("path", { d: `M${x1} ${y1}L${x2} ${y2}`, class: cls }));
  line(lane, height - 20, lane, 24, "lane");
  const text = (x: number, yy: number, s: string, cls = "") => svg("text", { x, y: yy, class: cls, "text-anchor": "middle" }, s);
  let open = false;
  steps.forEach((step, i) => {
    const onLane = step.kind === "add" || (step.kind === "norm" && i > 0 && steps[i - 1].kind === "add" && config.layers[layer].attn_norm.after_add !== "none");
    const x = onLane ? lane : mid, w = step.kind === "add" ? 34 : 150, yy = y(i);
    if (!onLane && !open) { line(lane, yy + 30, mid, yy + 30, "wire"); line(mid, yy + 30, mid, yy + 18, "wire arrow"); open = true; }
    else if (!onLane) line(mid, yy + 36, mid, yy + 18, "wire arrow");
    if (step.kind === "add") { line(mid, yy + 36, mid, yy, "wire"); line(mid, yy, lane + 18, yy, "wire arrow"); open = false; }
    const wide = onLane && step.kind === "norm" ? 104 : w;
    const left = onLane && step.kind === "norm" ? 8 : x - w / 2;
    parts.push(svg("g", pressable({ class: `step ${step.kind}${step.id === chosen ? " chosen" : ""}`, "data-key": `flow ${step.id}` }, `${step.title}, ${step.id}`, () => act(step.id)),
      svg("rect", { x: left, y: yy - 18, width: wide, height: 36, rx: step.kind === "add" ? 17 : 8 }), text(left + wide / 2, yy + (step.kind === "add" ? 6 : -1), step.title), step.kind !== "add" ? text(left + wide / 2, yy + 13, step.id, "small") : null));
  });
  parts.push(text(lane, height - 4, `x [${data.tokens.length}, ${config.d_model}]`, "small"), text(lane, 16, `[${data.tokens.length}, ${config.d_model}]`, "small"));
  return svg("svg", { viewBox: `0 0 330 ${height}`, class: "flow", role: "group", "aria-label": L(`第 ${layer} 层的流程`, `the flow of block ${layer}`) }, parts);
}

/** N storeys; the width of each bar is ‖x‖ of the chosen token, beside it what the lens says there. */
export function tower(compact = false): HTMLElement {
  const norms = data.norms[config.layers[0].ffn_norm.after_add !== "none" ? "normalized_resid_post" : "resid_post"];
  const sizes = norms.map((row) => row[state.token]), most = Math.max(...sizes);
  const row = (layer: number): HTMLElement => {
    const guess = data.lens?.[layer][state.token][0];
    const inner = h("i");
    inner.style.width = `${100 * sizes[layer] / most}%`;
    return h("li", {}, h("button", { type: "button", class: `storey${layer === state.layer ? " chosen" : ""}${data.detail.includes(layer) ? " full" : ""}`, "data-key": `storey ${layer}`, "aria-pressed": layer === state.layer,
      "aria-label": L(`第 ${layer} 层，残差流长度 ${format(sizes[layer], 2)}${guess ? `，透镜：${guess.text}` : ""}`, `storey ${layer}, length of the stream ${format(sizes[layer], 2)}${guess ? `, lens: ${guess.text}` : ""}`), onclick: () => change({ layer }) },
      h("b", {}, String(layer)), h("span", { class: "meter" }, inner), !compact && h("span", { class: "size" }, format(sizes[layer], 1)), guess && h("span", { class: "guess" }, visible(guess.text))));
  };
  return h("ol", { class: "tower", reversed: true, "aria-label": L("楼层，从上到下", "storeys, top first") }, sizes.map((_, i) => row(sizes.length - 1 - i)));
}

const handsBefore = new Map<number, number>();
/** Clock hands: pair i of a head turns by position · frequency_i. */
export function clocks(pairs: number[], frequencies: number[], position: number): HTMLElement {
  return h("div", { class: "clocks" }, pairs.map((pair) => {
    const angle = position * frequencies[pair];
    const hand = svg("path", { d: "M0 6L0 -34", class: "hand" });
    // The hand starts where it stood before, so that a moved slider makes it turn.
    const turn = (a: number): void => { hand.style.transform = `rotate(${-a}rad)`; };
    turn(handsBefore.get(pair) ?? angle);
    handsBefore.set(pair, angle);
    requestAnimationFrame(() => requestAnimationFrame(() => turn(angle)));
    hand.setAttribute("data-pair", String(pair));
    return h("div", { class: "clock" }, svg("svg", { viewBox: "-44 -44 88 88", role: "img", "aria-label": L(`第 ${pair} 对：${format(angle, 3)} 弧度`, `pair ${pair}: ${format(angle, 3)} rad`) },
      svg("circle", { r: 40, class: "dial" }), [0, 1, 2, 3].map((q) => svg("path", { d: "M0 -40L0 -35", class: "tick", transform: `rotate(${90 * q})` })), hand, svg("circle", { r: 3, class: "axle" })),
    h("span", {}, L(`第 ${pair} 对`, `pair ${pair}`)), h("small", {}, `${format(angle, 2)} rad`));
  }));
}

export function histogram(values: ArrayLike<number>, title: string): HTMLElement {
  const all = Float64Array.from(values as number[]).sort(), n = all.length, bins = 32;
  const low = all[Math.floor(0.005 * (n - 1))], high = all[Math.ceil(0.995 * (n - 1))], width = (high - low) / bins || 1;
  const counts = new Array<number>(bins).fill(0);
  let outside = 0;
  for (const x of all) { const i = Math.floor((x - low) / width); if (x < low || x > high) outside++; else counts[Math.min(Math.max(i, 0), bins - 1)]++; }
  const most = Math.max(...counts);
  const bars = counts.map((c, i) => svg("rect", { x: i * 10 + 1, y: 80 - 76 * c / most, width: 8, height: 76 * c / most }, svg("title", {}, `${format(low + i * width, 3)} … ${format(low + (i + 1) * width, 3)}: ${c}`)));
  return h("div", { class: "histogram" }, svg("svg", { viewBox: "0 0 320 84", role: "img", "aria-label": `${title}: ${L("从", "from")} ${format(all[0], 3)} ${L("到", "to")} ${format(all[n - 1], 3)}` }, bars),
    h("div", { class: "ends" }, h("span", {}, format(low, 3)), h("span", {}, title), h("span", {}, format(high, 3))),
    outside > 0 && h("p", { class: "outliers" }, L(`图外还有 ${outside} 个：最小 ${format(all[0], 3)}，最大 ${format(all[n - 1], 3)}`, `${outside} outside the picture: least ${format(all[0], 3)}, greatest ${format(all[n - 1], 3)}`)));
}

/** Curves over the storeys, on a logarithmic scale where they span more than 30 to 1. */
export interface Series { title: string; values: number[] }
export function curves(series: Series[], label: string): HTMLElement {
  const all = series.flatMap((s) => s.values).filter((x) => x > 0), low = Math.min(...all), high = Math.max(...all), log = high / low > 30;
  const f = (x: number): number => (log ? Math.log(Math.max(x, low)) : x), bottom = log ? f(low) : 0, top = f(high);
  const n = series[0].values.length, px = (i: number): number => 30 + 280 * i / Math.max(n - 1, 1), py = (x: number): number => 130 - 112 * (f(x) - bottom) / (top - bottom || 1);
  return h("div", { class: "curves" }, svg("svg", { viewBox: "0 0 330 150", role: "img", "aria-label": label }, svg("path", { d: "M30 130H312M30 130V14", class: "axis" }),
    svg("text", { x: 4, y: 22, class: "small" }, format(high, 1)), svg("text", { x: 4, y: 132, class: "small" }, format(log ? low : 0, 1)), svg("text", { x: 30, y: 146, class: "small" }, "0"), svg("text", { x: 300, y: 146, class: "small" }, String(n - 1)),
    series.map((s, i) => svg("path", { class: `curve c${i}`, d: s.values.map((x, j) => `${j ? "L" : "M"}${px(j).toFixed(1)} ${py(x).toFixed(1)}`).join("") })), svg("path", { class: "now", d: `M${px(state.layer)} 14V130` })),
    h("div", { class: "keys" }, series.map((s, i) => h("span", { class: `key c${i}` }, s.title)), log && h("span", {}, L("（对数轴）", "(log scale)"))));
}
