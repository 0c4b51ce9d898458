// The page: ten chapters, one at a time; the parts around them.
import "./style.css";
import { config, data, isDetailed, shortName } from "./data";
import { h } from "./dom";
import { tokenText } from "./format";
import { closePanel, panelIsOpen, redrawPanel } from "./panel";
import { L, State, change, onChange, state } from "./state";
import { embedding, line, position, tokens } from "./chapters/text";
import { attention, feedForward, norms, queries } from "./chapters/block";
import { firstToken, output } from "./chapters/output";

interface Chapter { zh: string; en: string; draw: () => (HTMLElement | null)[]; ofLayer: boolean }
const last: [string, string] = data.generated ? ["第一个词元", "The first token"] : ["句向量", "The vector"];
const chapters: Chapter[] = [
  { zh: "从一条直线开始", en: "From a line", draw: line, ofLayer: false },
  { zh: "词元", en: "Tokens", draw: tokens, ofLayer: false },
  { zh: "嵌入", en: "Embedding", draw: embedding, ofLayer: false },
  { zh: "位置", en: "Position", draw: position, ofLayer: true },
  { zh: "楼层与归一化", en: "Block and norm", draw: norms, ofLayer: true },
  { zh: "Q、K、V", en: "Q, K, V", draw: queries, ofLayer: true },
  { zh: "注意力", en: "Attention", draw: attention, ofLayer: true },
  { zh: "残差与前馈", en: "Residual and feed-forward", draw: feedForward, ofLayer: true },
  { zh: "输出与透镜", en: "Output and lens", draw: output, ofLayer: true },
  { zh: last[0], en: last[1], draw: firstToken, ofLayer: true },
];
const title = (i: number): string => L(chapters[i].zh, chapters[i].en);

function go(chapter: number): void {
  if (chapter < 1 || chapter > chapters.length) return;
  change({ chapter });
  scrollTo({ top: 0 });
  document.querySelector<HTMLElement>("main h1")?.focus();
}

function header(): HTMLElement {
  const themes: [State["theme"], string][] = [["auto", L("跟随系统", "auto")], ["light", L("浅色", "light")], ["dark", L("深色", "dark")]];
  return h("header", { class: "top" }, h("a", { class: "skip", href: "#chapter", onclick: (e: Event) => { e.preventDefault(); document.querySelector<HTMLElement>("main h1")?.focus(); } }, L("跳到正文", "skip to the chapter")),
    h("span", { class: "brand" }, h("b", {}, "琉璃"), " Liuli"), h("span", { class: "model", title: data.model }, config.name || shortName()),
    h("div", { class: "controls" },
      h("label", {}, L("小数 ", "digits "), h("input", { type: "number", min: 0, max: 9, value: state.digits, "data-key": "digits", onchange: (e: Event) => change({ digits: Math.min(9, Math.max(0, Number((e.target as HTMLInputElement).value))) }) })),
      h("select", { "aria-label": L("明暗", "theme"), "data-key": "theme", onchange: (e: Event) => change({ theme: themes[(e.target as HTMLSelectElement).selectedIndex][0] }) }, themes.map(([value, text]) => h("option", { selected: value === state.theme }, text))),
      h("button", { type: "button", "data-key": "lang", lang: state.lang === "zh" ? "en" : "zh", onclick: () => change({ lang: state.lang === "zh" ? "en" : "zh" }) }, state.lang === "zh" ? "English" : "中文")));
}
function contents(): HTMLElement {
  return h("nav", { class: "chapters", "aria-label": L("十章", "ten chapters") }, h("ol", {}, chapters.map((_, i) => h("li", {}, h("a", { href: `#${i + 1}`, "data-key": `chapter ${i + 1}`, "aria-current": i + 1 === state.chapter ? "page" : null, onclick: (e: Event) => { e.preventDefault(); go(i + 1); } }, h("b", {}, String(i + 1)), " ", title(i))))));
}
function focusBar(): HTMLElement {
  const layers = Array.from({ length: config.n_layers }, (_, i) => i);
  return h("div", { class: "focusbar" },
    h("div", { class: "chips", role: "group", "aria-label": L("看哪个词元", "which token") }, data.tokens.map((_, i) => h("button", { type: "button", class: `chip k${i % 5}`, "aria-pressed": i === state.token, "data-key": `token ${i}`, onclick: () => change({ token: i, position: i }) }, tokenText(i)))),
    chapters[state.chapter - 1].ofLayer && h("label", { class: "choose" }, L("层 ", "storey "), h("select", { "data-key": "layer", onchange: (e: Event) => change({ layer: (e.target as HTMLSelectElement).selectedIndex }) }, layers.map((i) => h("option", { selected: i === state.layer }, isDetailed(i) ? `${i} ●` : String(i))))));
}
function footer(): HTMLElement {
  const n = state.chapter;
  return h("nav", { class: "turn", "aria-label": L("翻页", "turn the page") }, n > 1 ? h("button", { type: "button", "data-key": "prev", onclick: () => go(n - 1) }, `← ${n - 1} ${title(n - 2)}`) : h("span"), n < chapters.length ? h("button", { type: "button", class: "primary", "data-key": "next", onclick: () => go(n + 1) }, `${n + 1} ${title(n)} →`) : h("span"));
}

function draw(): void {
  const root = document.documentElement;
  root.lang = state.lang === "zh" ? "zh-CN" : "en";
  if (state.theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = state.theme;
  document.title = `${state.chapter} ${title(state.chapter - 1)} · ${shortName()} · 琉璃 Liuli`;
  const focused = (document.activeElement as HTMLElement | null)?.dataset?.key, scrolled = document.querySelector(".chapters")?.scrollLeft ?? 0;
  const app = document.getElementById("app")!;
  app.replaceChildren(header(), contents(), focusBar(), h("main", { id: "chapter" }, h("h1", { tabindex: -1 }, h("span", { class: "no" }, String(state.chapter)), title(state.chapter - 1)), ...chapters[state.chapter - 1].draw().filter((e): e is HTMLElement => e !== null)), footer(),
    h("p", { class: "origin" }, L(`这一页上的每个数都来自一次真实的运行：${shortName()}，${data.tokens.length} 个词元。`, `Every number on this page comes from one real run: ${shortName()}, ${data.tokens.length} tokens.`), " ", h("code", {}, `liuli trace ${shortName()} --ids ${data.tokens.map((t) => t.id).join(",")}`)));
  for (const list of document.querySelectorAll<HTMLElement>(".tower")) { const storey = list.querySelector<HTMLElement>(".chosen"); if (storey) list.scrollTop = storey.offsetTop - list.clientHeight / 2; }
  document.querySelector(".chapters")!.scrollLeft = scrolled;
  document.querySelector(".chapters [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (focused) document.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  redrawPanel();
  if (location.hash !== `#${state.chapter}`) history.replaceState(null, "", `#${state.chapter}`);
}

addEventListener("keydown", (e) => {
  const target = e.target as HTMLElement;
  if (e.key === "Escape" && panelIsOpen()) { closePanel(); return; }
  if (e.altKey || e.ctrlKey || e.metaKey || /^(INPUT|SELECT|TEXTAREA|CANVAS)$/.test(target.tagName)) return;
  if (e.key === "ArrowRight") go(state.chapter + 1);
  if (e.key === "ArrowLeft") go(state.chapter - 1);
});
addEventListener("hashchange", () => { const n = Number(location.hash.slice(1)); if (n >= 1 && n <= chapters.length && n !== state.chapter) go(n); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
const asked = Number(location.hash.slice(1));
if (asked >= 1 && asked <= chapters.length) state.chapter = asked;
onChange(draw);
draw();
