// Chapters 5–8: one block.
import { block, config, data, kvHeadOf, nTokens, point, weight } from "../data";
import { activate, activationName, normPlace } from "../calc";
import { curves, flow, flowSteps, histogram, tower } from "../drawings";
import { h } from "../dom";
import { format, tokenText } from "../format";
import { derived, num } from "../number";
import { L, change, state } from "../state";
import { asTable, bar, choose, chooseHead, figure, heat, heatOfHead, heatOfPoint, notDetailed, note, p, pointLine, seriesTable, table, vectors, weightLine } from "../widgets";

const b = (name: string): string => block(state.layer, name);

// ---- 5 ----
export function norms(): HTMLElement[] {
  const plan = config.layers[state.layer];
  const sites = [...flowSteps(state.layer).filter((s) => s.kind === "norm").map((s) => s.id.replace(".out", "")), ...(config.final_norm !== "none" && point("ln_final.out") ? ["ln_final"] : []), ...(point("embed_ln.out") ? ["embed_ln"] : [])];
  const site = sites.includes(state.site) ? state.site : sites[0], full = site === "ln_final" || site === "embed_ln" ? site : b(site);
  const order = plan.attn_norm.after_add !== "none" ? L("这个模型是 post-norm：先相加，再归一化，主干道上每层都除一次 σ。", "This model is post-norm: first add, then normalise; the main lane is divided by σ in every block.")
    : plan.attn_norm.on_output !== "none" && plan.attn_norm.before !== "none" ? L("这个模型像三明治：每个分支前后各有一个归一化；残差主干道仍是干净的加法。", "This model is a sandwich: a norm before and after every branch; the residual lane is still a clean addition.")
      : plan.attn_norm.before !== "none" ? L("这个模型是 pre-norm：先归一化，再进分支；残差主干道是干净的加法。", "This model is pre-norm: normalise, then enter the branch; the residual lane is a clean addition.")
        : L("这个模型只在分支的输出上归一化。", "This model normalises the outputs of its branches only.");
  return [
    p(L(`模型是同一种楼层一层层叠起来的，共 ${config.n_layers} 层。每层做六步：归一化、注意力、相加、归一化、前馈、相加。`, `A model is one block repeated like storeys, ${config.n_layers} of them. Each takes six steps: norm, attention, add, norm, feed-forward, add.`), " ", order),
    h("div", { class: "two" },
      figure(L(`第 ${state.layer} 层的流程（点一步）`, `The flow of block ${state.layer} (press a step)`), h("div", {}, flow(state.layer, `${site}.out`, (id) => change(id.startsWith("ln") ? { site: id.replace(".out", "") } : id === "attn.out_proj" ? { chapter: 6 } : { chapter: 8 })))),
      figure(L("楼：横条是残差流的长度 ‖x‖，右边是透镜", "The tower: bars are the length of the stream ‖x‖, beside them the lens"), tower())),
    h("h3", {}, L("归一化，一步一步", "The norm, step by step")),
    choose(L("位置", "place"), sites.map((s) => [s, s] as [string, string]), site, (s) => change({ site: s })),
    ...(point(`${full}.out`) ? normSteps(full) : [notDetailed()]),
  ];
}
function normSteps(site: string): HTMLElement[] {
  const place = normPlace(site)!, t = state.token, rms = place.kind === "rms";
  const gamma = weight(`${site}.weight`), beta = weight(`${site}.bias`);
  return [
    p(rms ? L(`RMSNorm：不减均值，没有 β。σ = √(Σx²/n + ε)，y = x / σ · γ，γ 有 ${config.d_model} 个数。`, `RMSNorm: no mean is subtracted, there is no β. σ = √(Σx²/n + ε), y = x / σ · γ, with ${config.d_model} numbers in γ.`)
      : L(`LayerNorm：y = (x − μ) / σ · γ + β，γ 和 β 各 ${config.d_model} 个数。只看一行，也就是一个词元；各行互不影响。`, `LayerNorm: y = (x − μ) / σ · γ + β, ${config.d_model} numbers each in γ and β. It looks at one row, one token; rows do not affect each other.`)),
    table([L("词元", "token"), "μ", rms ? "Σx²/n" : "σ²", "σ"], data.tokens.map((_, i) => [tokenText(i), num(`${site}.mean`, [i, 0]), num(`${site}.var`, [i, 0]), num(`${site}.sigma`, [i, 0])])),
    h("h4", {}, `“${tokenText(t)}”`),
    vectors(config.d_model, [pointLine("x", place.input, [t]), pointLine("x − μ", `${site}.centered`, [t]), pointLine("÷ σ", `${site}.normalized`, [t]), weightLine("γ", `${site}.weight`), pointLine("× γ", `${site}.scaled`, [t]), weightLine("β", `${site}.bias`), pointLine("y", `${site}.out`, [t])], "norm"),
    h("div", { class: "two" }, gamma ? figure(L("γ 的分布", "histogram of γ"), histogram(gamma.values, "γ")) : null, beta ? figure(L("β 的分布", "histogram of β"), histogram(beta.values, "β")) : null),
    figure(L("归一化之前", "before"), heatOfPoint(place.input) ?? p()), figure(L("之后", "after"), heatOfPoint(`${site}.out`)!),
  ];
}

// ---- 6 ----
export function queries(): HTMLElement[] {
  if (!point(b("attn.q"))) return [notDetailed()];
  const t = state.token, kv = kvHeadOf(state.head), width = point(b("attn.rot_q"))!.shape[2], normed = config.qk_norm !== "none";
  const latent = config.latent;
  const kHeads = point(b("attn.k"))!.shape[1], kHead = Math.min(kv, kHeads - 1), vWidth = point(b("attn.v"))!.shape[2];
  return [
    p(L("每个词元问一个问题（查询 Q），挂一块牌子（键 K），备一份内容（值 V）。三者都是归一化后的向量乘一个矩阵。", "Every token asks a question (query Q), wears a label (key K) and holds a content (value V). Each is the normalised vector times a matrix.")),
    latent ? p(L(`这个模型先压缩：缓存里只放 ${latent.kv_lora_rank} 个数的潜变量和 ${latent.qk_rope_head_dim} 个转动的数，用时再展开成各头的键和值。`, `This model compresses first: the cache keeps a latent vector of ${latent.kv_lora_rank} numbers and ${latent.qk_rope_head_dim} rotated ones; keys and values of all heads are expanded from them.`))
      : config.n_kv_heads < config.n_heads ? p(L(`${config.n_heads} 个查询头共用 ${config.n_kv_heads} 个键值头：第 ${state.head} 个查询头用第 ${kv} 个。`, `${config.n_heads} query heads share ${config.n_kv_heads} key-value heads: query head ${state.head} uses number ${kv}.`)) : p(),
    chooseHead(),
    ...(latent ? [point(b("attn.q_latent")) ? figure("attn.q_latent", heatOfPoint(b("attn.q_latent"))!) : p(), figure("attn.kv_latent", heatOfPoint(b("attn.kv_latent"))!)] : []),
    vectors(width, [pointLine("q", b("attn.q"), [t, state.head]), normed ? pointLine(L("q 归一", "q normed"), b("attn.q_normed"), [t, state.head]) : null, pointLine(L("q 转动", "q turned"), b("attn.rot_q"), [t, state.head]),
      pointLine("k", b("attn.k"), [t, kHead]), normed ? pointLine(L("k 归一", "k normed"), b("attn.k_normed"), [t, kHead]) : null, pointLine(L("k 转动", "k turned"), b("attn.rot_k"), [t, kHead])], "qk"),
    vectors(vWidth, [pointLine("v", b("attn.v"), [t, kHead])], "v"),
    ...([["Q", "attn.rot_q", state.head], ["K", "attn.rot_k", kHead], ["V", "attn.v", kHead]] as [string, string, number][]).map(([title, name, head]) => figure(`${title} · ${name}`, heatOfHead(b(name), head) ?? p())),
    note("前四维附有引擎自己的核算：最大的几项、每个权重在文件里的编码。", "The first four dimensions come with the engine's own account: the largest terms, and each weight as the file stores it."),
  ].filter((e) => e.childNodes.length > 0);
}

// ---- 7 ----
export function attention(): HTMLElement[] {
  const matrix = (name: string, title: string): HTMLElement | null => {
    const x = point(b(name));
    return x && figure(`${title} · ${name}`, heat(b(name), { rows: data.tokens.map((_, i) => tokenText(i)), columns: x.shape[2], label: (c) => tokenText(c), value: (r, c) => x.get(state.head, r, c), place: (r, c) => [b(name), [state.head, r, c]] }));
  };
  const pattern = point(b("attn.pattern"))!, scores = point(b("attn.scores")), t = state.token;
  const keys = data.tokens.map((_, i) => i), window = config.layers[state.layer].sliding_window;
  return [
    p(L(`查询和键逐维相乘再相加，乘 ${format(config.attention_scale)}，得到分数；`, `Query and key are multiplied number by number and summed, times ${format(config.attention_scale)}: a score.`),
      config.causal ? L("后面的词被遮住；", " Later words are masked.") : L("这个模型两个方向都看，没有遮罩；", " This model looks both ways: nothing is masked."),
      L("softmax 把一行分数变成和为 1 的权重。", " Softmax turns a row of scores into weights that sum to 1."), window > 0 ? L(`这一层只看最近 ${window} 个位置。`, ` This block sees the last ${window} positions only.`) : ""),
    chooseHead(),
    scores ? table([L(`“${tokenText(t)}”看`, `“${tokenText(t)}” looks at`), "q · k", L("缩放后", "scaled"), L("遮罩后", "masked"), "softmax", ""], keys.map((k) => [tokenText(k), num(b("attn.scores_raw"), [state.head, t, k]), num(b("attn.scores"), [state.head, t, k]), num(b("attn.attn_scores"), [state.head, t, k]), num(b("attn.pattern"), [state.head, t, k]), bar(pattern.get(state.head, t, k), 1, "")]))
      : table([L(`“${tokenText(t)}”看`, `“${tokenText(t)}” looks at`), "softmax", ""], keys.map((k) => [tokenText(k), num(b("attn.pattern"), [state.head, t, k]), bar(pattern.get(state.head, t, k), 1, "")])),
    h("div", { class: "two" }, matrix("attn.scores_raw", "q · k"), matrix("attn.scores", L("分数", "scores")), matrix("attn.attn_scores", L("遮罩后", "masked")), matrix("attn.pattern", L("权重", "weights"))),
    h("h3", {}, L(`第 ${state.layer} 层的 ${config.n_heads} 个头`, `The ${config.n_heads} heads of block ${state.layer}`)),
    h("div", { class: "heads" }, Array.from({ length: Math.min(config.n_heads, 64) }, (_, head) => thumbnail(head))),
    ...(point(b("attn.z")) ? [h("h3", {}, L("加权后的值 z", "The weighted values z")), vectors(point(b("attn.z"))!.shape[2], [pointLine("z", b("attn.z"), [t, state.head])], "z")] : [notDetailed()]),
  ];
}
function thumbnail(head: number): HTMLElement {
  const pattern = point(b("attn.pattern"))!, size = Math.max(2, Math.floor(72 / nTokens));
  const canvas = h("canvas", { width: nTokens * size, height: nTokens * size, "aria-hidden": "true" });
  const g = canvas.getContext("2d")!, ink = getComputedStyle(document.body).getPropertyValue("--accent");
  for (let q = 0; q < nTokens; q++) for (let k = 0; k < nTokens; k++) { g.globalAlpha = Math.min(1, Math.max(0, pattern.get(head, q, k))); g.fillStyle = ink; g.fillRect(k * size, q * size, size, size); }
  return h("button", { type: "button", class: head === state.head ? "head chosen" : "head", "data-key": `head ${head}`, "aria-pressed": head === state.head, "aria-label": L(`第 ${head} 个头`, `head ${head}`), onclick: () => change({ head }) }, canvas, h("small", {}, String(head)));
}

// ---- 8 ----
export function feedForward(): HTMLElement[] {
  const t = state.token, plan = config.layers[state.layer], post = plan.attn_norm.after_add !== "none";
  const series = ["resid_post", "attn_out", "mlp_out"].filter((name) => data.norms[name]).map((name) => ({ title: `‖${name}‖`, values: data.norms[name].map((row) => row[t]) }));
  const parts = [
    p(L("残差：分支算出的东西只是加到主干道上，原来的数一直带着走。", "Residual: what a branch finds is only added to the main lane; the original is carried along all the way.")),
    figure(L(`“${tokenText(t)}”的残差流在各层有多长，每层加了多少`, `How long the stream of “${tokenText(t)}” is at each storey, and how much each adds`), curves(series, L("各层的长度", "lengths over the storeys")), asTable("lengths", () => seriesTable(series))),
  ];
  if (!point(b("mlp_out")) || !point(b("attn_out"))) return [...parts, notDetailed()];
  parts.push(h("h3", {}, L("账本", "The ledger")),
    vectors(config.d_model, [pointLine("resid_pre", b("resid_pre"), [t]), pointLine("+ attn_out", b("attn_out"), [t]), pointLine("= resid_mid", b("resid_mid"), [t]), post ? pointLine(L("归一", "norm"), b("normalized_resid_mid"), [t]) : null, pointLine("+ mlp_out", b("mlp_out"), [t]), pointLine("= resid_post", b("resid_post"), [t]), post ? pointLine(L("归一", "norm"), b("normalized_resid_post"), [t]) : null], "ledger"));
  if (plan.routed) parts.push(...experts());
  else parts.push(h("h3", {}, config.gated_ffn ? L(`前馈网络：${activationName() === "SiLU" ? "SwiGLU" : "GeGLU"}`, `Feed-forward: ${activationName() === "SiLU" ? "SwiGLU" : "GeGLU"}`) : L("前馈网络", "Feed-forward")), ...unit("mlp", config.d_ff));
  return parts;
}
function unit(prefix: string, width: number): HTMLElement[] {
  const t = state.token, name = (s: string) => b(`${prefix}.${s}`), post = point(name("post"));
  if (!post) return [notDetailed()];
  const row = post.row(t), order = Array.from({ length: width }, (_, i) => i).sort((x, y) => Math.abs(row[y]) - Math.abs(row[x])).slice(0, 8), gated = point(name("pre_linear")) !== null;
  return [
    p(gated ? L(`每个神经元有两路：门 pre 过 ${activationName()}，再乘另一路 pre_linear。下面是最响的 8 个（共 ${width} 个）。`, `Every neuron has two ways in: the gate pre goes through ${activationName()} and multiplies pre_linear. The 8 loudest of ${width}:`)
      : L(`每个神经元过一次 ${activationName()}。下面是最响的 8 个（共 ${width} 个）。`, `Every neuron goes through ${activationName()} once. The 8 loudest of ${width}:`)),
    table([L("神经元", "neuron"), "pre", `${activationName()}(pre)`, ...(gated ? ["pre_linear"] : []), "post"], order.map((i) => [String(i), num(name("pre"), [t, i]), derived(activate(point(name("pre"))!.get(t, i))), ...(gated ? [num(name("pre_linear"), [t, i])] : []), num(name("post"), [t, i])])),
    h("h4", {}, L("按顺序看", "In order")), vectors(width, [pointLine("pre", name("pre"), [t]), gated ? pointLine("pre_linear", name("pre_linear"), [t]) : null, pointLine("post", name("post"), [t])], prefix),
    figure(prefix, heatOfPoint(name("post"))!),
  ];
}
function experts(): HTMLElement[] {
  const shape = config.experts!, t = state.token, ids = point(b("mlp.expert_ids"))!, size = shape.n_experts / shape.n_groups;
  const chosen = Array.from(ids.row(t)), kept = point(b("mlp.groups_kept"));
  const which = choose(L("专家", "expert"), chosen.map((e) => [e, String(e)] as [number, string]), chosen.includes(state.step) ? state.step : chosen[0], (step) => change({ step }));
  const expert = chosen.includes(state.step) ? state.step : chosen[0];
  return [
    h("h3", {}, L("专家牌", "The board of experts")),
    p(L(`路由器给 ${shape.n_experts} 位专家打分，选出 ${shape.n_experts_active} 位${shape.n_groups > 1 ? `，只在最好的 ${shape.n_groups_kept} 组（共 ${shape.n_groups} 组）里选` : ""}。`, `A router scores ${shape.n_experts} experts and picks ${shape.n_experts_active}${shape.n_groups > 1 ? `, within the best ${shape.n_groups_kept} of ${shape.n_groups} groups` : ""}.`)),
    h("div", { class: "board" }, Array.from({ length: shape.n_groups }, (_, g) => h("div", { class: kept && kept.get(t, g) === 0 ? "group out" : "group" }, shape.n_groups > 1 && h("small", {}, L(`组 ${g} `, `group ${g} `), point(b("mlp.group_scores")) ? num(b("mlp.group_scores"), [t, g]) : null),
      Array.from({ length: size }, (_x, i) => { const e = g * size + i, slot = chosen.indexOf(e); return h("div", { class: slot >= 0 ? "expert chosen" : "expert" }, h("b", {}, String(e)), num(b("mlp.router_scores"), [t, e]), shape.choice_bias && h("span", {}, L("加偏置 ", "biased "), num(b("mlp.router_biased"), [t, e])), slot >= 0 && h("span", { class: "weight" }, "× ", num(b("mlp.expert_weights"), [t, slot]))); })))),
    table([L("词元", "token"), L("走过的专家", "its experts")], data.tokens.map((_, i) => [tokenText(i), Array.from(ids.row(i)).join(", ")])),
    vectors(config.d_model, [pointLine(L("专家之和", "routed"), b("mlp.routed_out"), [t]), pointLine(L("共享专家", "shared"), b("mlp.shared_out"), [t]), pointLine("mlp.out", b("mlp.out"), [t])], "moe"),
    which, ...(point(b(`mlp.experts.${expert}.post`)) ? unit(`mlp.experts.${expert}`, shape.d_ff) : [p(L("这位专家的内部没有放进这一页（只放了最后一个词元的专家）。", "This expert's inside is not on the page (only those of the last token are)."))]),
  ];
}
