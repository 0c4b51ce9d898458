// Reads what `liuli trace -o x.safetensors` wrote: names to { shape, values }.
import { readFileSync } from "node:fs";

export function readSafetensors(path) {
  const bytes = readFileSync(path);
  const headerLength = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + headerLength).toString("utf8"));
  const tensors = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (entry.dtype !== "F32") throw new Error(`${name} is ${entry.dtype}, expected F32`);
    const [begin, end] = entry.data_offsets.map((at) => 8 + headerLength + at);
    const copy = bytes.buffer.slice(bytes.byteOffset + begin, bytes.byteOffset + end);
    tensors.set(name, { shape: entry.shape, values: new Float32Array(copy) });
  }
  return tensors;
}

/** "blocks.0.ln1.out[5,3]" → its value. */
export function valueAt(tensors, place) {
  const [, name, list] = place.match(/^(.*)\[([\d,]+)\]$/);
  const tensor = tensors.get(name);
  if (!tensor) return undefined;
  let at = 0;
  list.split(",").map(Number).forEach((index, i) => { at = at * tensor.shape[i] + index; });
  return tensor.values[at];
}
