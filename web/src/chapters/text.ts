// Chapters 1–4: from a line of text to vectors that know where they stand.
import { block, config, data, nTokens, point } from "../data";
import { clocks } from "../drawings";
import { h, live } from "../dom";
import { format, tokenText, visible } from "../format";
import { derived, num } from "../number";
import { rotation } from "../calc";
import { L, change, state } from "../state";
import { chooseHead, figure, heatOfPoint, notDetailed, note, p, pointLine, table, vectors } from "../widgets";

// ---- 1 ----
export function line(): HTMLElement[] {
  const dots = Object.values(data.explanations).filter((e) => e.terms.length > 1 && e.terms[0].operands.length === 2), explanation = dots.find((e) => /attn\.q(_latent)?\[/.test(e.name)) ?? dots[0];
  const parts = [
    p(L("最简单的模型是一条直线：y = w·x + b。给它一个数 x，乘上斜率 w，加上 b，得到 y。", "The simplest model is a line: y = w·x + b. Take a number x, multiply by the slope w, add b, and you have y.")),
    p(L(`语言模型里的一个数也是这样来的，只是一条直线换成了 ${config.d_model} 条：每个输入各有一个斜率，乘好以后全部加起来。这就是高维空间里的“直线”。`,
      `A number inside a language model comes about the same way, with ${config.d_model} lines instead of one: every input has a slope of its own, and all products are added up. That is a line in high-dimensional space.`)),
  ];
  if (explanation) {
    const m = explanation.name.match(/^(.*)\[([\d,]+)\]$/)!, index = m[2].split(",").map(Number);
    parts.push(h("section", {}, h("h3", {}, L("这次运行里的一个数", "One number of this run")),
      p(h("code", {}, explanation.name), " = ", num(m[1], index)),
      table([L("输入 x", "input x"), "x", "w", "w · x"], explanation.terms.slice(0, 6).map((t) => {
        const x = t.operands.find((o) => o.is_point) ?? t.operands[0], w = t.operands.find((o) => o !== x)!, at = x.name.match(/^(.*)\[([\d,]+)\]$/);
        return [h("code", {}, x.name), at && point(at[1]) ? num(at[1], at[2].split(",").map(Number)) : derived(x.value), derived(w.value), derived(t.value)];
      })),
      p(L(`这是最大的 6 项；全部 ${explanation.n_terms} 项相加得 `, `These are the 6 largest; all ${explanation.n_terms} terms together make `), derived(explanation.recomputed), "."),
      note("点任何一个数，都能看到它的手算过程。", "Press any number to see it worked out by hand.")));
  }
  parts.push(h("section", { class: "card" }, h("h3", {}, L("这一页里的模型", "The model on this page")), h("dl", {}, facts().flatMap(([k, value]) => [h("dt", {}, k), h("dd", {}, value)]))));
  return parts;
}
function facts(): [string, string][] {
  const c = config, list: [string, string][] = [[L("模型", "model"), c.name || data.model], [L("家族", "family"), c.family], [L("层数", "storeys"), String(c.n_layers)],
    [L("每个词元几个数", "numbers per token"), String(c.d_model)], [L("注意力头", "heads"), c.n_kv_heads === c.n_heads ? String(c.n_heads) : `${c.n_heads} (${L("键值", "key-value")} ${c.n_kv_heads})`],
    [L("词表", "vocabulary"), String(c.vocab_size)], [L("归一化", "norm"), c.layers[0].attn_norm.before !== "none" ? `${c.layers[0].attn_norm.before === "rms" ? "RMSNorm" : "LayerNorm"}, pre-norm${c.layers[0].attn_norm.on_output !== "none" ? " + post" : ""}` : "post-norm"]];
  if (c.experts) list.push([L("专家", "experts"), `${c.experts.n_experts}, ${L("每个词元用", "used per token")} ${c.experts.n_experts_active}`]);
  list.push([L("乘法的精度", "product class"), `${data.class}, ${data.isa}`]);
  return list;
}

// ---- 2 ----
export function tokens(): HTMLElement[] {
  return [
    p(L(`模型不读字，只读词元的编号。分词器把这段话切成 ${nTokens} 个词元；每个词元是词表里的一行，词表共有 ${config.vocab_size} 行。`,
      `A model reads no letters, only numbers of tokens. The tokenizer cuts this text into ${nTokens} tokens; each is one row of a vocabulary of ${config.vocab_size}.`)),
    h("div", { class: "bigtokens" }, data.tokens.map((t, i) => h("button", { type: "button", class: `bigtoken k${i % 5}${i === state.token ? " chosen" : ""}`, "data-key": `big ${i}`, "aria-pressed": i === state.token, onclick: () => change({ token: i }) }, h("b", {}, visible(t.text)), h("small", {}, String(t.id))))),
    table([L("位置", "position"), L("词元", "token"), L("编号", "id")], data.tokens.map((t, i) => [String(i), visible(t.text), String(t.id)])),
    note("␣ 是空格，⏎ 是换行。一个汉字可能被切成几个词元，单看时显示为 �。点一个词元，后面各章就看它。", "␣ is a blank, ⏎ a line end. A character may be cut into several tokens; alone they show as �. Choose a token: the chapters that follow look at it."),
  ];
}

// ---- 3 ----
export function embedding(): HTMLElement[] {
  const embed = point("embed")!;
  const extra = ["pos_embed", "type_embed", "embed_sum", "embed_ln.out"].filter((name) => point(name));
  const lines = [pointLine("embed", "embed", [state.token]), ...extra.map((name) => pointLine(name, name, [state.token]))];
  return [
    p(L(`编号换成向量：到嵌入表里取出那一行，共 ${config.d_model} 个数。于是 ${nTokens} 个词元成了一个 ${nTokens}×${config.d_model} 的矩阵；从第一层到最后一层，它的形状都不再改变。`,
      `A number becomes a vector: its row of the embedding table, ${config.d_model} numbers. So ${nTokens} tokens become a ${nTokens}×${config.d_model} matrix, and that shape stays the same from the first block to the last.`)),
    config.embedding_scale !== 1 ? p(L(`这个模型再乘上 ${format(config.embedding_scale)}（√${config.d_model}）。`, `This model multiplies it by ${format(config.embedding_scale)} (√${config.d_model}).`)) : p(),
    figure("embed", heatOfPoint("embed")!),
    h("h3", {}, L(`“${tokenText(state.token)}”的向量`, `The vector of “${tokenText(state.token)}”`)), vectors(config.d_model, lines, "embed"),
    h("h3", {}, L("谁和谁相近：余弦相似度", "Who is near whom: cosine similarity")),
    table(["", ...data.tokens.map((_, i) => tokenText(i))], data.tokens.map((_, i) => [tokenText(i), ...data.tokens.map((_x, j) => derived(cosine(embed.row(i), embed.row(j)), 2))])),
    extra.includes("embed_sum") ? figure("embed_sum", heatOfPoint("embed_sum")!) : p(),
  ].filter((e) => e.childNodes.length > 0);
}
function cosine(a: Float32Array, b: Float32Array): number {
  let ab = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) { ab += a[i] * b[i]; aa += a[i] * a[i]; bb += b[i] * b[i]; }
  return aa && bb ? ab / Math.sqrt(aa * bb) : 0;
}

// ---- 4 ----
export function position(): HTMLElement[] {
  const rope = data.ropes[config.layers[state.layer].rope];
  if (!rope || rope.dim === 0 || config.positions !== "none") return learned();
  const half = rope.dim / 2, pairs = [...new Set(Array.from({ length: Math.min(8, half) }, (_, i) => Math.round(i * (half - 1) / Math.max(Math.min(8, half) - 1, 1))))];
  const q = block(state.layer, config.qk_norm !== "none" ? "attn.q_normed" : "attn.q"), rot = block(state.layer, "attn.rot_q"), tensor = point(rot), width = tensor?.shape[2] ?? 0;
  const from = config.latent ? width - rope.dim : 0;
  const hands = live(() => [
    h("p", { class: "where" }, L("位置 ", "position "), String(state.position), state.position < nTokens ? ` “${tokenText(state.position)}”` : ""),
    figure(L("第 i 对转过的角度", "how far pair i has turned"), clocks(pairs, rope.frequencies, state.position)),
    table([L("对", "pair"), L("频率", "frequency"), L("角度", "angle"), "cos", "sin"], pairs.map((i) => { const angle = state.position * rope.frequencies[i]; return [String(i), derived(rope.frequencies[i]), derived(angle), derived(Math.cos(angle)), derived(Math.sin(angle))]; }))]);
  return [
    p(L("注意力本身不知道先后。RoPE 让每一对数像钟表的指针一样转动：位置越靠后，转得越多；前面的对转得快，后面的对转得慢。",
      "Attention by itself knows no order. RoPE turns each pair of numbers like a hand of a clock: the later the position, the further it turns; the first pairs turn fast, the last ones slowly.")),
    p(L(`角度 = 位置 × 频率，频率 = ${rope.theta}^(−2i/${rope.dim})${rope.scaled ? "，再按模型的规则缩放" : ""}。`, `Angle = position × frequency, frequency = ${rope.theta}^(−2i/${rope.dim})${rope.scaled ? ", then scaled by the model's rule" : ""}.`)),
    h("label", { class: "slider" }, L("位置 ", "position "), h("input", { type: "range", min: 0, max: Math.max(nTokens - 1, 32), value: state.position, "data-key": "position", oninput: (e: Event) => { state.position = Number((e.target as HTMLInputElement).value); hands.redraw(); } })),
    hands.element,
    h("h3", {}, L(`“${tokenText(state.token)}”的查询向量，转动前后`, `The query of “${tokenText(state.token)}”, before and after`)), chooseHead(),
    tensor ? table([L("对", "pair"), L("转动前", "before"), "", L("转动后", "after"), ""], pairs.filter((i) => rotation(state.layer, state.token, from + i, width)).map((i) => [String(i), num(q, [state.token, state.head, from + i]), num(q, [state.token, state.head, from + i + half]), num(rot, [state.token, state.head, from + i]), num(rot, [state.token, state.head, from + i + half])])) : notDetailed(),
    data.ropes.length > 1 ? note(`这个模型有 ${data.ropes.length} 套频率，不同的层用不同的一套；第 ${state.layer} 层的底数是 ${rope.theta}。`, `This model has ${data.ropes.length} sets of frequencies for different layers; block ${state.layer} uses base ${rope.theta}.`) : p(),
  ].filter((e) => e.childNodes.length > 0);
}
function learned(): HTMLElement[] {
  const picture = heatOfPoint("pos_embed");
  return [
    p(L("这个模型不用 RoPE：每个位置有一行学来的（或由正弦算出的）向量，直接加到词嵌入上。", "This model has no RoPE: every position has a vector of its own, learned or made of sines, which is added to the embedding.")),
    picture ? figure("pos_embed", picture) : p(L("它也没有位置向量。", "It has no position vectors either.")),
    ...(picture ? [vectors(config.d_model, [pointLine("embed", "embed", [state.token]), pointLine("pos_embed", "pos_embed", [state.token]), pointLine("type_embed", "type_embed", [state.token]), pointLine("embed_sum", "embed_sum", [state.token])], "pos")] : []),
  ];
}
