// What the page knows: the data that `liuli tour` put into it. Nothing on the page has another source.

export interface TensorEntry { shape: number[]; f32?: string; as?: string }
export interface Slots { before: string; on_output: string; after_add: string }
export interface LayerPlan { attn_norm: Slots; ffn_norm: Slots; routed: boolean; sliding_window: number; rope: number }
export interface Experts {
  n_experts: number; n_experts_active: number; d_ff: number; shared_d_ff: number; score: string; choice_bias: boolean;
  shared_gate: boolean; n_groups: number; n_groups_kept: number; group_best: number; renormalise: boolean; weight_scale: number;
}
export interface Latent {
  q_lora_rank: number; kv_lora_rank: number; qk_nope_head_dim: number; qk_rope_head_dim: number; v_head_dim: number;
}
export interface Config {
  family: string; name: string; vocab_size: number; d_model: number; n_layers: number; d_ff: number; n_heads: number;
  n_kv_heads: number; head_dim: number; max_seq_len: number; norm_eps: number; activation: string; gated_ffn: boolean;
  qk_norm: string; tied_embeddings: boolean; positions: string; embedding_norm: string; embedding_scale: number;
  attention_scale: number; attention_soft_cap: number; final_soft_cap: number; causal: boolean; final_norm: string;
  has_output: boolean; layers: LayerPlan[]; experts: Experts | null; latent: Latent | null;
}
export interface TokenText { id: number; text: string }
export interface Guess extends TokenText { logit: number; p: number }
export interface Logprob extends TokenText { logprob: number }
export interface Generated extends Logprob { top: Logprob[] }
export interface Rope { theta: number; dim: number; scaled: boolean; attention_factor: number; frequencies: number[] }
export interface Operand {
  name: string; value: number; used: number; is_point: boolean;
  stored?: { tensor: string; type: string; row: number; block: number; at: number; code?: number; offset?: number; scale?: number; minimum?: number };
}
export interface Explanation {
  name: string; kind: string; formula: string; class: string; isa: string; value: number; n_terms: number; rest: number; sum: number;
  recomputed: number; difference: number; magnitude: number; agrees: boolean;
  rounding?: { activations: string; weights: string };
  terms: { operands: Operand[]; value: number }[]; steps: { formula: string; value: number }[];
}
export interface TourData {
  schema: string; version: number; model: string; class: string; isa: string; language: "zh" | "en"; digits: number;
  config: Config; detail: number[]; tokens: TokenText[]; ropes: Rope[]; points: Record<string, string>;
  norms: Record<string, number[][]>; rows: Record<string, number[]>; types: Record<string, { type: string; shape: number[] }>;
  lens?: Guess[][][]; candidates?: Guess[]; generated?: Generated[]; stop_reason?: string; cache_bytes_per_token?: number;
  embedding?: { pooling: string; normalise: boolean };
  values: Record<string, TensorEntry>; weights: Record<string, TensorEntry>; explanations: Record<string, Explanation>;
}

export const data = JSON.parse(document.getElementById("liuli-tour")!.textContent!) as TourData;
export const config = data.config;
export const nTokens = data.tokens.length;
export const lastToken = nTokens - 1;

export class Tensor {
  constructor(readonly name: string, readonly shape: number[], readonly values: Float32Array) {}
  offset(index: number[]): number {
    let at = 0;
    for (let i = 0; i < this.shape.length; i++) at = at * this.shape[i] + index[i];
    return at;
  }
  get(...index: number[]): number { return this.values[this.offset(index)]; }
  /** One innermost row: all indices but the last. */
  row(...index: number[]): Float32Array {
    const width = this.shape[this.shape.length - 1];
    let at = 0;
    for (let i = 0; i < index.length; i++) at = at * this.shape[i] + index[i];
    return this.values.subarray(at * width, at * width + width);
  }
}

function decode(text: string): Float32Array {
  const bytes = atob(text);
  const out = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) out[i] = bytes.charCodeAt(i);
  return new Float32Array(out.buffer);
}

const known = new Map<string, Tensor | null>();
function open(table: "values" | "weights", name: string): Tensor | null {
  const key = `${table}/${name}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const entry = data[table][name];
  let tensor: Tensor | null = null;
  if (entry?.f32 !== undefined) tensor = new Tensor(name, entry.shape, decode(entry.f32));
  else if (entry?.as !== undefined) tensor = new Tensor(name, entry.shape, open(table, entry.as)!.values);
  known.set(key, tensor);
  return tensor;
}
/** The values at a point, or null where the page has them not. */
export const point = (name: string): Tensor | null => open("values", name);
export const weight = (name: string): Tensor | null => open("weights", name);
/** A row of a table of which the page has only some. */
export function weightRow(name: string, row: number): Float32Array | null {
  const at = data.rows[name]?.indexOf(row) ?? -1;
  const table = weight(name);
  return at < 0 || !table ? null : table.row(at);
}

/** One value by name and index; the logits of the page are those of the last position. */
export function read(name: string, index: number[]): number | undefined {
  const tensor = point(name);
  if (!tensor) return undefined;
  if (name === "logits") return index[0] === lastToken ? tensor.values[index[1]] : undefined;
  return tensor.get(...index);
}
export const placeName = (name: string, index: number[]): string => `${name}[${index.join(",")}]`;
export const isDetailed = (layer: number): boolean => data.detail.includes(layer);
export const block = (layer: number, name: string): string => `blocks.${layer}.${name}`;
/** Where the stream stands when a block has ended: after the norm, where the norm comes last. */
export function streamAfter(layer: number): string {
  return config.layers[layer].ffn_norm.after_add !== "none" ? block(layer, "normalized_resid_post") : block(layer, "resid_post");
}
export const kvHeadOf = (head: number): number => Math.floor(head / (config.n_heads / config.n_kv_heads));
export const shortName = (): string => {
  const name = data.model.replace(/\/+$/, "").split("/").pop()!;
  return name.replace(/\.gguf$/, "");
};
