// What the reader chose. Every change draws the page again.
import { config, data, lastToken } from "./data";

export type Lang = "zh" | "en";
export interface State {
  lang: Lang; theme: "auto" | "light" | "dark"; digits: number; chapter: number;
  token: number; layer: number; head: number; firstDim: number; site: string; step: number; position: number;
}
export const state: State = {
  lang: data.language, theme: "auto", digits: data.digits, chapter: 1, token: lastToken, layer: data.detail[0], head: 0,
  firstDim: 0, site: "ln1", step: 0, position: lastToken,
};
let listener = (): void => {};
export function onChange(draw: () => void): void { listener = draw; }
export function change(part: Partial<State>): void {
  Object.assign(state, part);
  state.layer = Math.min(Math.max(state.layer, 0), config.n_layers - 1);
  listener();
}
/** The text in the reader's language. */
export const L = (zh: string, en: string): string => (state.lang === "zh" ? zh : en);
