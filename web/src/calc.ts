// Hand calculations: how a number of the run follows from other numbers on the page. Everything is worked out here in
// double precision from the values the run recorded, so each one is also a check of what the engine computed.
import { Tensor, block, config, data, kvHeadOf, point, read, weight, weightRow } from "./data";
import { exactly, format } from "./format";
import { L } from "./state";

/** A piece of a line: text, a number of the run (it can be pressed), or a weight or an intermediate result. */
export type Piece = string | { name: string; index: number[] } | { v: number };
export interface Calculation {
  formula: string;
  lines: Piece[][];
  result?: number;
  observed: number;
  note?: string;
  numpy?: string;
}

const at = (name: string, ...index: number[]): Piece => ({ name, index });
const v = (value: number): Piece => ({ v: value });
const array = (name: string, values: ArrayLike<number>): string =>
  `${name} = np.array([${Array.from(values, exactly).join(", ")}], np.float32)`;
const doubles = (values: ArrayLike<number>): number[] => Array.from(values);
const sum = (values: number[]): number => values.reduce((a, b) => a + b, 0);

/** Σ terms, the largest first; each shown as pieces. */
function terms(values: number[], show: (i: number) => Piece[], most = 6): Piece[][] {
  const order = values.map((_, i) => i).sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  const lines = order.slice(0, most).map((i) => [...show(i), " = ", v(values[i])] as Piece[]);
  const rest = order.slice(most);
  if (rest.length) lines.push([L(`其余 ${rest.length} 项之和 = `, `the other ${rest.length} terms = `), v(sum(rest.map((i) => values[i])))]);
  lines.push(["Σ = ", v(sum(values))]);
  return lines;
}

// ---- norms ----
export interface NormPlace { input: string; kind: string; weight: string }
/** What a norm reads and which kind it is, by the name before ".out": "blocks.3.ln1", "ln_final". */
export function normPlace(site: string): NormPlace | null {
  const m = site.match(/^blocks\.(\d+)\.(.+)$/);
  if (site === "embed_ln") return { input: "embed_sum", kind: config.embedding_norm, weight: site };
  if (site === "ln_final") return { input: block(config.n_layers - 1, "resid_post"), kind: config.final_norm, weight: site };
  if (!m) return null;
  const layer = Number(m[1]), plan = config.layers[layer];
  const b = (name: string) => block(layer, name);
  if (m[2] === "ln1") return plan.attn_norm.before !== "none"
    ? { input: b("resid_pre"), kind: plan.attn_norm.before, weight: site } : { input: b("resid_mid"), kind: plan.attn_norm.after_add, weight: site };
  if (m[2] === "ln2") return plan.ffn_norm.before !== "none"
    ? { input: b("resid_mid"), kind: plan.ffn_norm.before, weight: site } : { input: b("resid_post"), kind: plan.ffn_norm.after_add, weight: site };
  if (m[2] === "ln1_post") return { input: b("attn.out_proj"), kind: plan.attn_norm.on_output, weight: site };
  if (m[2] === "ln2_post") return { input: b("mlp.out"), kind: plan.ffn_norm.on_output, weight: site };
  return null;
}

function norm(site: string, stage: string, [t, i]: number[], observed: number): Calculation | null {
  const place = normPlace(site);
  const input = place && point(place.input);
  if (!place || !input || place.kind === "none") return null;
  const x = doubles(input.row(t)), n = x.length, rms = place.kind === "rms";
  const name = (s: string) => `${site}.${s}`;
  const gamma = weight(`${place.weight}.weight`)?.values, beta = weight(`${place.weight}.bias`)?.values;
  const eps = config.norm_eps;
  const python = [array("x", x), gamma ? array("gamma", gamma) : "", beta ? array("beta", beta) : "", `eps = ${eps}`,
    rms ? "sigma = np.sqrt(np.mean(x.astype(np.float64) ** 2) + eps)\nnormalized = x / sigma"
      : "mean = x.astype(np.float64).mean()\nsigma = np.sqrt(x.astype(np.float64).var() + eps)\nnormalized = (x - mean) / sigma",
    `out = normalized${gamma ? " * gamma" : ""}${beta ? " + beta" : ""}`].filter(Boolean).join("\n");
  const calc = (formula: string, lines: Piece[][], result: number): Calculation => ({ formula, lines, result, observed, numpy: python });
  const mean = rms ? 0 : sum(x) / n;
  const squares = x.map((a) => (a - mean) ** 2);
  const run = (s: string, ...index: number[]) => read(name(s), index) ?? NaN;
  switch (stage) {
    case "mean":
      if (rms) return calc(L("RMSNorm 不减均值：μ = 0", "RMSNorm subtracts no mean: μ = 0"), [], 0);
      return calc("μ = Σ x / n", [...terms(x, (j) => [at(place.input, t, j)]), [`μ = Σ / ${n} = `, v(mean)]], mean);
    case "var":
      return calc(rms ? "Σ x² / n" : "σ² = Σ (x − μ)² / n",
        [...terms(squares, (j) => [rms ? "" : "(", at(place.input, t, j), ...(rms ? [] : [" − ", at(name("mean"), t, 0), ")"]), "²"] as Piece[]), [`Σ / ${n} = `, v(sum(squares) / n)]], sum(squares) / n);
    case "sigma":
      return calc("σ = √(var + ε)", [["√(", at(name("var"), t, 0), ` + ${eps})`]], Math.sqrt(run("var", t, 0) + eps));
    case "centered":
      return calc(rms ? L("RMSNorm：不减均值，仍是 x", "RMSNorm: no mean is taken off, it stays x") : "x − μ",
        [[at(place.input, t, i), " − ", at(name("mean"), t, 0)]], x[i] - run("mean", t, 0));
    case "normalized":
      return calc(rms ? "x̂ = x / σ" : "x̂ = (x − μ) / σ", [[at(name("centered"), t, i), " / ", at(name("sigma"), t, 0)]], run("centered", t, i) / run("sigma", t, 0));
    case "scaled": {
      const g = gamma ? gamma[i] : 1;
      return calc("x̂ · γ", [[at(name("normalized"), t, i), " × γ ", v(g)]], run("normalized", t, i) * g);
    }
    default: {
      const b = beta ? beta[i] : 0;
      return calc(beta ? "y = x̂ · γ + β" : "y = x̂ · γ", [[at(name("scaled"), t, i), ...(beta ? [" + β ", v(b)] as Piece[] : [L("（没有 β）", " (there is no β)")])]], run("scaled", t, i) + b);
    }
  }
}

// ---- the stream ----
function added(parts: [string, number[]][], observed: number, formula: string): Calculation | null {
  const values = parts.map(([name, index]) => read(name, index));
  if (values.some((x) => x === undefined)) return null;
  const line: Piece[] = [];
  parts.forEach(([name, index], i) => { if (i) line.push(" + "); line.push({ name, index }); });
  return { formula, lines: [line], result: sum(values as number[]), observed, numpy: `np.float32(${values.map((x) => exactly(x!)).join(") + np.float32(")})` };
}
function same(name: string, index: number[], observed: number, formula: string): Calculation | null {
  const value = read(name, index);
  return value === undefined ? null : { formula, lines: [[at(name, ...index)]], result: value, observed };
}

function stream(layer: number, p: string, index: number[], observed: number): Calculation | null {
  const b = (name: string) => block(layer, name), plan = config.layers[layer];
  const post = plan.attn_norm.after_add !== "none";
  switch (p) {
    case "resid_pre": {
      if (layer > 0) {
        const before = plan.ffn_norm.after_add !== "none" ? block(layer - 1, "normalized_resid_post") : block(layer - 1, "resid_post");
        return same(before, index, observed, L("上一层的输出", "what the storey below gave"));
      }
      if (config.embedding_norm !== "none") return same("embed_ln.out", index, observed, L("归一化后的嵌入", "the normalised embedding"));
      if (config.positions !== "none") return added([["embed", index], ["pos_embed", index]], observed, L("词嵌入 + 位置嵌入", "embedding + position"));
      return same("embed", index, observed, L("词元的嵌入", "the token's embedding"));
    }
    case "attn_out": return plan.attn_norm.on_output !== "none" ? same(b("ln1_post.out"), index, observed, L("归一化后的注意力输出", "attention's output, normalised")) : same(b("attn.out_proj"), index, observed, "W_O · z");
    case "mlp_out": return plan.ffn_norm.on_output !== "none" ? same(b("ln2_post.out"), index, observed, L("归一化后的前馈输出", "feed-forward's output, normalised")) : same(b("mlp.out"), index, observed, "W_down · post");
    case "resid_mid": return added([[b("resid_pre"), index], [b("attn_out"), index]], observed, "resid_mid = resid_pre + attn_out");
    case "resid_post": return added([[b(post ? "normalized_resid_mid" : "resid_mid"), index], [b("mlp_out"), index]], observed, L("前一条道 + 前馈", "the lane so far + feed-forward"));
    case "normalized_resid_mid": return same(b("ln1.out"), index, observed, L("先加，再归一化（post-norm）", "first add, then normalise (post-norm)"));
    case "normalized_resid_post": return same(b("ln2.out"), index, observed, L("先加，再归一化（post-norm）", "first add, then normalise (post-norm)"));
    default: return null;
  }
}

// ---- attention ----
function dot(a: Tensor, ai: number[], c: Tensor, ci: number[], observed: number, formula: string): Calculation {
  const x = doubles(a.row(...ai)), y = doubles(c.row(...ci));
  const products = x.map((value, j) => value * y[j]);
  return { formula, lines: terms(products, (j) => [at(a.name, ...ai, j), " × ", at(c.name, ...ci, j)]), result: sum(products), observed,
    numpy: `${array("q", x)}\n${array("k", y)}\nq.astype(np.float64) @ k` };
}

/** Which values of a head RoPE turns together, and by what. */
export function rotation(layer: number, t: number, i: number, width: number): { a: number; b: number; pair: number; angle: number; first: boolean; factor: number } | null {
  const rope = data.ropes[config.layers[layer].rope];
  if (!rope || rope.dim === 0) return null;
  const from = config.latent ? width - rope.dim : 0, half = rope.dim / 2, r = i - from;
  if (r < 0 || r >= rope.dim) return null;
  const pair = r % half;
  return { a: from + pair, b: from + pair + half, pair, angle: t * rope.frequencies[pair], first: r < half, factor: rope.attention_factor };
}

function rotated(layer: number, which: string, [t, head, i]: number[], observed: number): Calculation | null {
  const source = block(layer, config.qk_norm !== "none" ? `attn.${which}_normed` : `attn.${which}`);
  const tensor = point(source);
  if (!tensor) return null;
  const turn = rotation(layer, t, i, tensor.shape[2]);
  if (!turn) return same(source, [t, head, i], observed, L("这一维不转动", "this dimension is not turned"));
  const x = tensor.get(t, head, turn.a), y = tensor.get(t, head, turn.b);
  const c = Math.cos(turn.angle) * turn.factor, s = Math.sin(turn.angle) * turn.factor;
  const lines: Piece[][] = [[`θ = ${t} × `, v(turn.angle / (t || 1)), " = ", v(turn.angle), L("（弧度）", " rad")], ["cos θ = ", v(c), ", sin θ = ", v(s)],
    turn.first ? [at(source, t, head, turn.a), " × cos θ − ", at(source, t, head, turn.b), " × sin θ"] : [at(source, t, head, turn.b), " × cos θ + ", at(source, t, head, turn.a), " × sin θ"]];
  if (t === 0) lines[0] = ["θ = 0"];
  return { formula: turn.first ? "a · cos θ − b · sin θ" : "b · cos θ + a · sin θ", lines, result: turn.first ? x * c - y * s : y * c + x * s, observed,
    numpy: `a, b, theta = ${exactly(x)}, ${exactly(y)}, ${turn.angle}\n${turn.first ? "a * np.cos(theta) - b * np.sin(theta)" : "b * np.cos(theta) + a * np.sin(theta)"}` };
}

function headNorm(layer: number, which: string, [t, head, i]: number[], observed: number): Calculation | null {
  const source = block(layer, `attn.${which}`), tensor = point(source), gamma = weight(block(layer, `attn.${which}_norm.weight`))?.values;
  if (!tensor || !gamma) return null;
  const whole = config.qk_norm === "whole", width = tensor.shape[2];
  const x = whole ? doubles(tensor.values.subarray(t * tensor.shape[1] * width, (t + 1) * tensor.shape[1] * width)) : doubles(tensor.row(t, head));
  const sigma = Math.sqrt(sum(x.map((a) => a * a)) / x.length + config.norm_eps), g = gamma[whole ? head * width + i : i];
  return { formula: "x / √(Σx²/n + ε) · γ", lines: [["√(Σx²/n + ε) = ", v(sigma)], [at(source, t, head, i), " / ", v(sigma), " × γ ", v(g)]], result: tensor.get(t, head, i) / sigma * g, observed };
}

function attention(layer: number, p: string, index: number[], observed: number): Calculation | null {
  const b = (name: string) => block(layer, `attn.${name}`), [h, q, k] = index;
  switch (p) {
    case "q_normed": case "k_normed": return headNorm(layer, p[0], index, observed);
    case "rot_q": case "rot_k": return rotated(layer, p[4], index, observed);
    case "scores_raw": {
      const rq = point(b("rot_q")), rk = point(b("rot_k"));
      return rq && rk && dot(rq, [q, h], rk, [k, kvHeadOf(h)], observed, "q · k = Σ qᵢ kᵢ");
    }
    case "scores": {
      const raw = read(b("scores_raw"), index), cap = config.attention_soft_cap;
      if (raw === undefined) return null;
      const scaled = raw * config.attention_scale;
      const lines: Piece[][] = [[at(b("scores_raw"), ...index), " × ", v(config.attention_scale)]];
      if (cap) lines.push([`${cap} · tanh(`, v(scaled), ` / ${cap})`]);
      return { formula: cap ? "c · tanh(q·k · scale / c)" : "q·k · scale", lines, result: cap ? cap * Math.tanh(scaled / cap) : scaled, observed };
    }
    case "attn_scores":
      if (observed === -Infinity) return { formula: L("遮罩：这个词看不见它", "the mask hides this key"), lines: [[L("查询 ", "query "), `${q}, `, L("键 ", "key "), `${k} → −∞`]], result: -Infinity, observed };
      return same(b("scores"), index, observed, L("遮罩让它通过", "the mask lets it through"));
    case "pattern": {
      const scores = point(b("attn_scores"));
      if (!scores) return null;
      const s = doubles(scores.row(h, q)), top = Math.max(...s), e = s.map((x) => Math.exp(x - top)), total = sum(e);
      const lines: Piece[][] = s.flatMap((x, j) => (x === -Infinity ? [] : [["exp(", at(scores.name, h, q, j), " − ", v(top), ") = ", v(e[j])] as Piece[]]));
      return { formula: "exp(s − max) / Σ exp(s − max)", lines: [...lines.slice(0, 16), ["Σ = ", v(total)], [v(e[k]), " / ", v(total)]], result: e[k] / total, observed,
        numpy: `${array("s", s)}\ne = np.exp(s - s.max())\n(e / e.sum())[${k}]` };
    }
    case "z": {
      const pattern = point(b("pattern")), values = point(b("v")), [t, head, i] = index;
      if (!pattern || !values) return null;
      const w = doubles(pattern.row(head, t)), kv = Math.min(kvHeadOf(head), values.shape[1] - 1);
      const products = w.map((x, j) => x * values.get(j, kv, i));
      return { formula: "z = Σ pattern · v", lines: terms(products, (j) => [at(pattern.name, head, t, j), " × ", at(values.name, j, kv, i)], 12), result: sum(products), observed,
        numpy: `${array("p", w)}\n${array("v", w.map((_, j) => values.get(j, kv, i)))}\np.astype(np.float64) @ v` };
    }
    default: return null;
  }
}

// ---- feed-forward ----
function erf(x: number): number {  // Abramowitz and Stegun 7.1.5, the series: exact to double for the sizes that occur
  if (Math.abs(x) > 5) return Math.sign(x);
  let term = x, total = x;
  for (let n = 1; n < 120; n++) { term *= -x * x / n; total += term / (2 * n + 1); }
  return total * 2 / Math.sqrt(Math.PI);
}
export function activate(x: number): number {
  switch (config.activation) {
    case "silu": return x / (1 + Math.exp(-x));
    case "gelu_tanh": return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    case "gelu_erf": return 0.5 * x * (1 + erf(x / Math.SQRT2));
    default: return Math.max(x, 0);
  }
}
export const activationName = (): string => ({ silu: "SiLU", gelu_tanh: "GELU", gelu_erf: "GELU", relu: "ReLU" })[config.activation] ?? config.activation;

function gate(prefix: string, index: number[], observed: number): Calculation | null {
  const pre = read(`${prefix}.pre`, index), linear = read(`${prefix}.pre_linear`, index), name = activationName();
  if (pre === undefined) return null;
  const a = activate(pre), line: Piece[] = [`${name}(`, at(`${prefix}.pre`, ...index), ") = ", v(a)];
  if (linear === undefined) return { formula: `${name}(pre)`, lines: [line], result: a, observed };
  return { formula: `${name}(pre) · pre_linear`, lines: [line, [v(a), " × ", at(`${prefix}.pre_linear`, ...index)]], result: a * linear, observed };
}

function router(layer: number, p: string, [t, e]: number[], observed: number): Calculation | null {
  const b = (name: string) => block(layer, `mlp.${name}`), shape = config.experts!;
  const row = (name: string) => { const x = point(b(name)); return x ? doubles(x.row(t)) : null; };
  switch (p) {
    case "router_scores": {
      const logits = row("router_logits");
      if (!logits) return null;
      if (shape.score === "sigmoid") return { formula: "1 / (1 + exp(−x))", lines: [["1 / (1 + exp(−", at(b("router_logits"), t, e), "))"]], result: 1 / (1 + Math.exp(-logits[e])), observed };
      const top = Math.max(...logits), total = sum(logits.map((x) => Math.exp(x - top)));
      return { formula: "exp(x − max) / Σ", lines: [["exp(", at(b("router_logits"), t, e), " − ", v(top), ") / ", v(total)]], result: Math.exp(logits[e] - top) / total, observed };
    }
    case "router_biased": {
      const score = read(b("router_scores"), [t, e]), bias = weight(b("router.choice_bias"))?.values[e];
      if (score === undefined || bias === undefined) return null;
      return { formula: L("分数 + 偏置（只用于选择）", "score + bias (for the choice only)"), lines: [[at(b("router_scores"), t, e), " + ", v(bias)]], result: score + bias, observed };
    }
    case "group_scores": {
      const name = shape.choice_bias ? "router_biased" : "router_scores", scores = row(name);
      if (!scores) return null;
      const size = shape.n_experts / shape.n_groups, members = Array.from({ length: size }, (_, i) => e * size + i).sort((x, y) => scores[y] - scores[x]);
      const best = members.slice(0, Math.min(shape.group_best, size)), line: Piece[] = [];
      best.forEach((m, i) => { if (i) line.push(" + "); line.push(at(b(name), t, m)); });
      return { formula: L(`组内最大的 ${best.length} 个之和`, `sum of the group's ${best.length} best`), lines: [line], result: sum(best.map((m) => scores[m])), observed };
    }
    case "expert_weights": {
      const ids = row("expert_ids"), scores = row("router_scores");
      if (!ids || !scores) return null;
      const chosen = ids.map((id) => scores[id]), total = shape.renormalise ? sum(chosen) : 1;
      const lines: Piece[][] = [[at(b("router_scores"), t, ids[e]), ...(shape.renormalise ? [" / ", v(total)] as Piece[] : []), ` × ${shape.weight_scale}`]];
      return { formula: shape.renormalise ? L("分数 / 选中者之和 × 倍数", "score / sum of the chosen × scale") : L("分数 × 倍数", "score × scale"), lines, result: chosen[e] / total * shape.weight_scale, observed };
    }
    case "routed_out": {
      const ids = row("expert_ids"), weights = row("expert_weights");
      if (!ids || !weights) return null;
      const outs = ids.map((id) => read(b(`experts.${id}.out`), [t, e]));
      if (outs.some((x) => x === undefined)) return null;
      const products = outs.map((x, j) => x! * weights[j]);
      return { formula: "Σ w · expert(h)", lines: terms(products, (j) => [at(b("expert_weights"), t, j), " × ", at(b(`experts.${ids[j]}.out`), t, e)]), result: sum(products), observed };
    }
    case "router_logits": {
      const w = weight(b("router.weight")), x = point(block(layer, "ln2.out"));
      if (!w || !x) return null;
      const products = doubles(x.row(t)).map((a, j) => a * w.get(e, j));
      return { formula: "W_router · ln2.out", lines: terms(products, (j) => [at(x.name, t, j), " × ", v(w.get(e, j))]), result: sum(products), observed };
    }
    default: return null;
  }
}

// ---- both ends ----
function embedding(p: string, [t, i]: number[], observed: number): Calculation | null {
  if (p === "embed") {
    const row = weightRow("embed.weight", data.tokens[t].id), scale = config.embedding_scale;
    if (!row) return null;
    return { formula: scale === 1 ? `W_E[${data.tokens[t].id}]` : `W_E[${data.tokens[t].id}] × ${format(scale)}`,
      lines: [[L(`嵌入表第 ${data.tokens[t].id} 行第 ${i} 个 = `, `row ${data.tokens[t].id} of the table, number ${i} = `), v(row[i]), ...(scale === 1 ? [] : [" × ", v(scale)] as Piece[])]], result: row[i] * scale, observed };
  }
  if (p === "pos_embed" || p === "type_embed") {
    const row = weight(`${p}.weight`)?.row(t), number = data.rows[`${p}.weight`]?.[t];
    return row ? { formula: `${p === "pos_embed" ? "W_pos" : "W_type"}[${number}]`, lines: [[L(`第 ${number} 行第 ${i} 个 = `, `row ${number}, number ${i} = `), v(row[i])]], result: row[i], observed } : null;
  }
  if (p === "embed_sum") {
    const parts: [string, number[]][] = ["embed", "pos_embed", "type_embed"].filter((name) => point(name)).map((name) => [name, [t, i]]);
    return added(parts, observed, parts.map(([name]) => name).join(" + "));
  }
  return null;
}

function logits([t, id]: number[], observed: number): Calculation | null {
  const w = weightRow("unembed.weight", id), x = point("ln_final.out");
  if (!w || !x) return null;
  const products = doubles(x.row(t)).map((a, j) => a * w[j]), total = sum(products), cap = config.final_soft_cap;
  const lines = terms(products, (j) => [at("ln_final.out", t, j), " × ", v(w[j])]);
  if (cap) lines.push([`${cap} · tanh(Σ / ${cap})`]);
  return { formula: `W_U[${id}] · ln_final.out`, lines, result: cap ? cap * Math.tanh(total / cap) : total, observed, numpy: `${array("w", w)}\n${array("x", x.row(t))}\nw.astype(np.float64) @ x` };
}

function pooled([i]: number[], observed: number): Calculation | null {
  const last = point(config.layers.length ? (config.layers[config.n_layers - 1].ffn_norm.after_add !== "none" ? block(config.n_layers - 1, "normalized_resid_post") : "ln_final.out") : "");
  const pooling = data.embedding?.pooling;
  if (!last || !pooling) return null;
  const n = last.shape[0], d = last.shape[1];
  const row = Array.from({ length: d }, (_, j) => pooling === "cls" ? last.get(0, j) : pooling === "last" ? last.get(n - 1, j) : sum(Array.from({ length: n }, (_x, t) => last.get(t, j))) / n);
  const length = data.embedding!.normalise ? Math.sqrt(sum(row.map((x) => x * x))) : 1;
  const parts = pooling === "mean" ? terms(Array.from({ length: n }, (_, t) => last.get(t, i)), (t) => [at(last.name, t, i)], 16) : [[at(last.name, pooling === "cls" ? 0 : n - 1, i)]];
  return { formula: `${pooling}${length === 1 ? "" : " / ‖…‖"}`, lines: [...parts, [v(row[i]), " / ", v(length)]], result: row[i] / length, observed };
}

/** The hand calculation of a number, or null where its operands are not on the page. */
export function calculate(name: string, index: number[]): Calculation | null {
  const observed = read(name, index);
  if (observed === undefined) return null;
  if (name === "logits") return logits(index, observed);
  if (name === "embedding") return pooled(index, observed);
  const m = name.match(/^(?:blocks\.(\d+)\.)?(.+)$/)!, layer = m[1] === undefined ? -1 : Number(m[1]), p = m[2];
  const stage = p.match(/^(embed_ln|ln1|ln1_post|ln2|ln2_post|ln_final)\.(mean|var|sigma|centered|normalized|scaled|out)$/);
  if (stage) return norm(layer < 0 ? stage[1] : block(layer, stage[1]), stage[2], index, observed);
  if (layer < 0) return embedding(p, index, observed);
  if (p.startsWith("attn.")) return attention(layer, p.slice(5), index, observed);
  const unit = p.match(/^(mlp(?:\.shared|\.experts\.\d+)?)\.post$/);
  if (unit) return gate(block(layer, unit[1]), index, observed);
  if (p === "mlp.out" && config.layers[layer].routed) {
    const parts: [string, number[]][] = [[block(layer, "mlp.routed_out"), index]];
    if (config.experts!.shared_d_ff) parts.push([block(layer, "mlp.shared_out"), index]);
    return added(parts, observed, parts.length > 1 ? "routed_out + shared_out" : "routed_out");
  }
  if (p.startsWith("mlp.")) return config.experts ? router(layer, p.slice(4), index, observed) : null;
  return stream(layer, p, index, observed);
}
