// Chapters 9–10: what comes out.
import { Guess, block, config, data, lastToken, nTokens, point, streamAfter } from "../data";
import { h, live } from "../dom";
import { bytesText, format, percent, tokenText, visible } from "../format";
import { derived, num } from "../number";
import { L, change, state } from "../state";
import { tower } from "../drawings";
import { bar, figure, heat, heatOfPoint, note, p, pointLine, table, vectors } from "../widgets";

// ---- 9 ----
export function output(): HTMLElement[] {
  if (!data.lens || !data.candidates) return hiddenStates();
  const guesses = data.lens[state.layer][state.token];
  return [
    p(L(`最后一层之后再归一化一次，然后与输出矩阵的每一行做点积：${config.vocab_size} 个词元，各得一分（logit）。`, `After the last block comes one more norm, then a dot product with every row of the output matrix: ${config.vocab_size} tokens, a score (logit) for each.`),
      config.tied_embeddings ? L("这个模型的输出矩阵就是嵌入表本身。", " This model's output matrix is the embedding table itself.") : ""),
    h("h3", {}, L("得分最高的词元", "The highest scores")),
    table([L("词元", "token"), "logit", L("概率", "probability"), ""], data.candidates.map((c) => [visible(c.text), num("logits", [lastToken, c.id]), h("span", { class: "num derived" }, percent(c.p)), bar(c.p, data.candidates![0].p, "")])),
    vectors(config.d_model, [pointLine("ln_final.out", "ln_final.out", [lastToken])], "final"),
    h("h3", {}, L("透镜：如果停在某一层", "The lens: if the model stopped at a storey")),
    p(L("把任一层的残差流直接交给最后的归一化和输出矩阵，看它会说什么。常见的趋势是早层杂乱、晚层才定，但这只是趋势，各个模型不同。", "Hand the stream of any storey to the final norm and the output matrix, and see what it would say. Early storeys tend to be vague and late ones decided; it is a tendency, and models differ.")),
    lensTable(),
    h("div", { class: "two" }, figure(L("选一层", "choose a storey"), tower()), figure(L(`第 ${state.layer} 层，“${tokenText(state.token)}”之后`, `storey ${state.layer}, after “${tokenText(state.token)}”`), table([L("词元", "token"), L("概率", "probability"), "logit", ""], guesses.map((g: Guess) => [visible(g.text), h("span", { class: "num derived" }, percent(g.p)), derived(g.logit), bar(g.p, 1, "")])))),
  ];
}
function lensTable(): HTMLElement {
  const layers = config.n_layers, cells = (layer: number): HTMLElement[] => data.tokens.map((_, t) => {
    const guess = data.lens![layer][t][0], cell = h("td", {}, h("button", { type: "button", class: "lens", "data-key": `lens ${layer} ${t}`, "aria-label": `${visible(guess.text)} ${percent(guess.p)}`, onclick: () => change({ layer, token: t }) }, visible(guess.text)));
    cell.style.setProperty("--p", String(Math.round(100 * guess.p)));
    if (layer === state.layer && t === state.token) cell.className = "chosen";
    return cell;
  });
  return h("div", { class: "scroll" }, h("table", { class: "lenstable" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, L("层", "storey")), data.tokens.map((_, t) => h("th", { scope: "col" }, tokenText(t))))),
    h("tbody", {}, Array.from({ length: layers }, (_, i) => layers - 1 - i).map((layer) => h("tr", {}, h("th", { scope: "row" }, String(layer)), cells(layer))))));
}
function hiddenStates(): HTMLElement[] {
  const last = streamAfter(config.n_layers - 1);
  return [
    p(L("这个模型不预测下一个词：它没有输出矩阵，最后一层的矩阵就是结果。", "This model predicts no next word: it has no output matrix, the last block's matrix is its result.")),
    figure(last, heatOfPoint(last) ?? heatOfPoint("ln_final.out") ?? p()),
    figure(L("楼", "the tower"), tower()),
  ];
}

// ---- 10 ----
let temperature = 1, topK = 0, topP = 1, cachedSteps = 0;
export function firstToken(): HTMLElement[] {
  if (!data.generated || !data.candidates) return textVector();
  const x = point("logits")!;
  const drawn = live(() => {
    const left = sampled(x.values);
    return [
      p(L(`温度 ${temperature}、top-k ${topK || "关"}、top-p ${topP}：留下 ${left.kept} 个词元；下面是得分最高的。`, `Temperature ${temperature}, top-k ${topK || "off"}, top-p ${topP}: ${left.kept} tokens are left. The highest scores:`)),
      table([L("词元", "token"), "logit", L("概率", "probability"), ""], data.candidates!.map((c) => { const q = left.probability(c.id); return [visible(c.text), num("logits", [lastToken, c.id]), h("span", { class: "num derived" }, percent(q)), bar(q, left.most, "")]; }))];
  });
  const slider = (label: string, min: number, max: number, step: number, now: number, set: (v: number) => void): HTMLElement => h("label", { class: "slider" }, label, " ", h("input", { type: "range", min, max, step, value: now, "data-key": `s ${label}`, oninput: (e: Event) => { set(Number((e.target as HTMLInputElement).value)); drawn.redraw(); } }));
  const first = data.generated[0];
  return [
    p(L("softmax 把分数变成概率，再从中选一个。这次运行用的是贪心：取最大的。", "Softmax turns scores into probabilities, and one token is drawn. This run was greedy: it took the largest."), first ? h("strong", {}, L(` 选中“${visible(first.text)}”，概率 `, ` It chose “${visible(first.text)}”, probability `), percent(Math.exp(first.logprob))) : ""),
    h("div", { class: "sliders" }, slider(L("温度", "temperature"), 0.1, 2, 0.1, temperature, (value) => { temperature = value; }), slider("top-k", 0, 40, 1, topK, (value) => { topK = value; }), slider("top-p", 0.05, 1, 0.05, topP, (value) => { topP = value; })),
    drawn.element,
    h("h3", {}, L("接下去的词元", "The tokens that follow")),
    table([L("新词元", "new token"), L("概率", "probability"), L("还考虑过", "also considered")], data.generated.map((g) => [visible(g.text), h("span", { class: "num derived" }, percent(Math.exp(g.logprob))), g.top.filter((o) => o.id !== g.id).slice(0, 4).map((o) => `${visible(o.text)} ${percent(Math.exp(o.logprob))}`).join("   ")])),
    h("h3", {}, L("键值缓存在长大", "The key-value cache grows")), ...cache(),
  ];
}
let order: number[] | undefined;  // of the logits, greatest first: sorting a vocabulary takes longer than a slider waits
// What the chosen settings leave of the distribution; the steps are those of the sampler: temperature, top-k, top-p.
function sampled(logits: Float32Array): { kept: number; most: number; probability: (id: number) => number } {
  order ??= Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]);
  const top = logits[order[0]];
  const weights = order.slice(0, topK || order.length).map((id) => Math.exp((logits[id] - top) / temperature));
  const total = weights.reduce((a, b) => a + b, 0);
  let kept = 0, mass = 0;
  while (kept < weights.length && (kept === 0 || mass < topP * total)) mass += weights[kept++];
  const left = new Map(order.slice(0, kept).map((id, i) => [id, weights[i] / mass]));
  return { kept, most: weights[0] / mass, probability: (id) => left.get(id) ?? 0 };
}
function cache(): HTMLElement[] {
  const generated = data.generated!, bytes = data.cache_bytes_per_token ?? 0;
  const names = [...data.tokens.map((_, i) => tokenText(i)), ...generated.map((g) => visible(g.text))];
  const rotK = block(state.layer, "attn.rot_k"), keys = point(rotK);
  const rows = live(() => {
    const filled = nTokens + cachedSteps;
    return [
      h("div", { class: "cache", role: "img", "aria-label": L(`缓存有 ${filled} 行`, `the cache has ${filled} rows`) }, names.map((name, i) => h("span", { class: i < nTokens ? "row prompt" : i < filled ? "row new" : "row empty" }, name))),
      p(L(`${filled} 行 × ${bytesText(bytes)} = ${bytesText(filled * bytes)}（全部 ${config.n_layers} 层）`, `${filled} rows × ${bytesText(bytes)} = ${bytesText(filled * bytes)} (all ${config.n_layers} storeys)`))];
  });
  return [
    p(L("旧词元的键和值算一次就存下来；每来一个新词元，只算它自己的一行，再和存着的所有行相比。", "Keys and values of old tokens are computed once and kept; a new token computes only its own row and compares it with all rows kept.")),
    h("label", { class: "slider" }, L("已读入的新词元 ", "new tokens read "), h("input", { type: "range", min: 0, max: generated.length, value: cachedSteps, "data-key": "cache", oninput: (e: Event) => { cachedSteps = Number((e.target as HTMLInputElement).value); rows.redraw(); } })),
    rows.element,
    keys ? figure(L(`第 ${state.layer} 层缓存里的键，第 0 个键值头`, `keys in the cache of storey ${state.layer}, key-value head 0`), heat(rotK, { rows: data.tokens.map((_, i) => tokenText(i)), columns: keys.shape[2], label: (c) => L(`第 ${c} 维`, `dim ${c}`), value: (r, c) => keys.get(r, 0, c), place: (r, c) => [rotK, [r, 0, c]] })) : p(),
    note("旅程到此为止：这个新词元接到末尾，同样的十步再走一遍。", "Here the tour ends: the new token is appended, and the same ten steps begin again."),
  ].filter((e) => e.childNodes.length > 0);
}
function textVector(): HTMLElement[] {
  const vector = point("embedding")!, pooling = data.embedding!.pooling;
  const how = pooling === "mean" ? L("各行取平均", "the mean of all rows") : pooling === "cls" ? L("第一行", "the first row") : L("最后一行", "the last row");
  return [
    p(L(`这个模型给一段话一个向量：${how}${data.embedding!.normalise ? "，再缩到长度 1" : ""}。两段话的向量越相近，意思越相近。`, `This model gives one vector for a text: ${how}${data.embedding!.normalise ? ", scaled to length 1" : ""}. The nearer two vectors, the nearer the meanings.`)),
    vectors(vector.shape[0], [{ title: L("句向量", "vector"), cell: (i) => num("embedding", [i]) }], "vector"),
    figure("embedding", heat("embedding", { rows: [L("句向量", "vector")], columns: vector.shape[0], label: (c) => L(`第 ${c} 维`, `dim ${c}`), value: (_r, c) => vector.values[c], place: (_r, c) => ["embedding", [c]] })),
    p(L(`长度 `, "Length "), derived(Math.sqrt(vector.values.reduce((a, x) => a + x * x, 0))), ". ", format(vector.shape[0], 0), L(" 个数。", " numbers.")),
    note("生成用的键值缓存在这里用不着：整段话一次读完。", "No key-value cache is needed here: the whole text is read at once."),
  ];
}
