// Opens the tour from disk in headless Chromium and holds it against `liuli trace`.
//
//   node tour_test.mjs LIULI MODELS TINY [SCREENSHOTS]
//
// LIULI: the program; MODELS: a folder with smollm2.gguf, qwen2.5.gguf, gemma3.gguf and minilm/; TINY: tests/golden/tiny.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readSafetensors, valueAt } from "./safetensors.mjs";

// The packages live in web/, where the page is built.
const { chromium } = createRequire(new URL("../../web/package.json", import.meta.url))("playwright-core");
const [liuli, models, tiny, screenshots] = process.argv.slice(2);
const kChapters = 10, kComparedValues = 200, kMaxBytes = 15e6, kFirstPaintMs = 1000;
const cases = [
  { name: "smollm2", model: join(models, "smollm2.gguf"), input: ["The capital of France is the city of Paris, and"] },
  { name: "qwen2.5", model: join(models, "qwen2.5.gguf"), input: ["今天西安的天气怎么样？我想出去"] },
  { name: "gemma3", model: join(models, "gemma3.gguf"), input: ["The capital of France is the city of Paris and it"] },
  { name: "minilm", model: join(models, "minilm"), input: ["A cat sat on the mat."] },
  { name: "deepseek_v3", model: join(tiny, "deepseek_v3"), input: ["--ids", "5,9,33,2,17,40"] },
  { name: "gpt2", model: join(tiny, "gpt2"), input: ["--ids", "5,9,33,2,17,40,7,12"] },
  { name: "bert", model: join(tiny, "bert"), input: ["--ids", "5,9,33,2,17,40,7,12"] },
  { name: "olmo2", model: join(tiny, "olmo2"), input: ["--ids", "5,9,33,2,17,40,7,12"] },
  { name: "mixtral", model: join(tiny, "mixtral"), input: ["--ids", "5,9,33,2,17,40,7,12"] },
];
/** Products with a matrix: explained by the engine itself, from operands as its class rounded them. */
const isExplained = new Set(["attn.q", "attn.k", "attn.v", "attn.q_latent", "attn.kv_latent", "attn.out_proj", "mlp.pre", "mlp.pre_linear", "mlp.out", "mlp.shared.pre", "mlp.shared.pre_linear", "mlp.shared_out"]);
const folder = mkdtempSync(join(tmpdir(), "liuli-tour-"));
const run = (...args) => execFileSync(liuli, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/** No number may come from anywhere but the data: what the code must not contain. */
function scanCode(html) {
  const code = [...html.matchAll(/<script>([\s\S]*?)<\/script>/g)].map((m) => m[1]).join("\n");
  assert.ok(code.length > 10000, "the page has a script");
  for (const source of [/Math\.random/, /crypto/i, /Date\b/, /performance\./, /\bfetch\b/, /XMLHttpRequest/, /WebSocket/, /\bimport\(/, /localStorage/, /navigator\.(?!clipboard)/])
    assert.doesNotMatch(code, source);
  const outside = html.replace(/<script[\s\S]*?<\/script>/g, "");
  assert.doesNotMatch(outside, /(?:src|href)="(?!#)[^"]/, "nothing is loaded from elsewhere");
}

const shown = (page) => page.$$eval("[data-at]", (all) => all.map((e) => [e.dataset.at, e.textContent]));
/** What a value looks like with so many decimals: the rule the page states. */
function asShown(value, digits) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value), exponent = (value !== 0 && size < 0.5 * 10 ** -digits) || size >= 1e7;
  return (exponent ? value.toExponential(Math.max(digits - 1, 0)) : value.toFixed(digits)).replace(/-/g, "−");
}

async function openPage(browser, path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage(), problems = [];
  page.on("console", (message) => { if (message.type() === "error" || message.type() === "warning") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) problems.push(`request for ${request.url()}`); });
  await page.goto(pathToFileURL(path).href);
  return { page, context, problems };
}

/** Every chapter through the keyboard; returns what numbers were shown. */
async function walk(page) {
  const values = new Map();
  for (let chapter = 1; chapter <= kChapters; chapter++) {
    const heading = await page.textContent("main h1");
    assert.ok(heading.startsWith(String(chapter)), `chapter ${chapter} is open, not ${heading}`);
    for (const [place, text] of await shown(page)) values.set(place, text);
    const unnamed = await page.$$eval("button, canvas:not([aria-hidden]), select, input, [role=button]", (all) => all.filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label"))).length);
    assert.equal(unnamed, 0, `chapter ${chapter}: everything that can be pressed has a name`);
    await page.keyboard.press("ArrowRight");
  }
  return values;
}

/** One number of every kind in every chapter, pressed: its hand calculation agrees with the run. */
async function calculations(page) {
  const kinds = new Map();
  for (let chapter = 1; chapter <= kChapters; chapter++) {
    await page.click(`.chapters li:nth-child(${chapter}) a`);
    for (const [place] of await shown(page)) {
      const kind = place.replace(/^blocks\.\d+\./, "").replace(/experts\.\d+/, "experts.E").replace(/\[.*/, "");
      if (kinds.has(kind)) continue;
      await page.click(`[data-at="${place}"]`);
      const text = await page.textContent(".panel .body");
      const difference = text.match(/(?:differs from the run by|与运行相差) ([\d.e+-]+)/);
      const value = Number((await page.textContent(".panel .big")).replace(/−/g, "-"));
      kinds.set(kind, { place, difference: difference ? Number(difference[1]) : /equal to the run|一位不差/.test(text) ? 0 : null, value });
      assert.ok(text.includes("liuli explain"), `${place} names its command`);
      await page.keyboard.press("Escape");
      assert.equal(await page.$(".panel"), null, "Escape closes the panel");
    }
  }
  return kinds;
}

async function checkCase(browser, { name, model, input }) {
  const path = join(folder, `${name}.html`), traced = join(folder, `${name}.safetensors`);
  const report = JSON.parse(run("tour", model, ...input, "-o", path, "--lang", "en", "--json"));
  assert.ok(statSync(path).size < kMaxBytes, `${name}: ${statSync(path).size} bytes`);
  run("trace", model, "--ids", report.ids.join(","), "--points", "*", "-o", traced);
  const tensors = readSafetensors(traced), html = readFileSync(path, "utf8");
  scanCode(html);
  const english = await openPage(browser, path);
  const paint = await english.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()[0].startTime)).observe({ type: "paint", buffered: true })));
  assert.ok(paint < kFirstPaintMs, `${name}: first paint after ${paint} ms`);
  const values = await walk(english.page);
  let compared = 0;
  for (const [place, text] of values) {
    const value = valueAt(tensors, place);
    if (value === undefined) { assert.match(place, /^embedding\[/, `${place} is in the trace`); continue; }
    assert.equal(text, asShown(value, 4), `${name} ${place}`);
    compared++;
  }
  assert.ok(compared >= kComparedValues, `${name}: only ${compared} values are shown`);
  const kinds = await calculations(english.page);
  const unexplained = [...kinds].filter(([, k]) => k.difference === null).map(([kind]) => kind);
  for (const [kind, k] of kinds) {
    // Products in the prompt class round their operands to 16 bits: a dot product may move by about 1 %.
    const share = /^(attn\.(scores_raw|scores|z)|logits|mlp\.router_logits)$/.test(kind) || isExplained.has(kind) ? 0.02 : 1e-5;
    if (k.difference !== null) assert.ok(k.difference <= share * Math.max(Math.abs(k.value), 1), `${name} ${kind} ${k.place}: ${k.difference}`);
  }
  assert.deepEqual(english.problems, []);
  await english.context.close();

  const chinese = await openPage(browser, path, { viewport: { width: 360, height: 740 }, reducedMotion: "reduce", colorScheme: "dark" });
  await chinese.page.click("[data-key=lang]");
  assert.equal(await chinese.page.getAttribute("html", "lang"), "zh-CN");
  for (let chapter = 1; chapter <= kChapters; chapter++) {
    await chinese.page.click(`.chapters li:nth-child(${chapter}) a`);
    assert.match(await chinese.page.textContent("main"), /\p{Script=Han}/u);
    const width = await chinese.page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${name}: chapter ${chapter} is ${width} wide on a phone`);
  }
  assert.deepEqual(chinese.problems, []);
  await chinese.context.close();
  console.log(`${name}: ${(statSync(path).size / 1e6).toFixed(1)} MB, ${report.ids.length} tokens, first paint ${Math.round(paint)} ms, ${compared} values equal, ${kinds.size} kinds of numbers worked out${unexplained.length ? `, by command only: ${unexplained.join(" ")}` : ""}`);
  return path;
}

async function takeScreenshots(browser, pages) {
  const views = [
    ["gemma3", 5, "en", "light", "tour-block.png", 8, ".flow"], ["smollm2", 5, "en", "light", "tour-calculation.png", 14, ".histogram", "[data-at*='ln1.var[10']"],
    ["qwen2.5", 7, "zh", "light", "tour-attention.png", 11, "main table"], ["gemma3", 4, "en", "dark", "tour-rope.png", -1, ".clocks"],
    ["deepseek_v3", 8, "en", "light", "tour-experts.png", 1, ".board"], ["smollm2", 9, "zh", "dark", "tour-lens.png", 22, ".lenstable"]];
  for (const [name, chapter, lang, colorScheme, file, layer, look, press] of views) {
    const { page, context } = await openPage(browser, pages.get(name), { viewport: { width: 1100, height: 820 }, colorScheme });
    if (lang === "zh") await page.click("[data-key=lang]");
    await page.click(`.chapters li:nth-child(${chapter}) a`);
    if (layer >= 0) await page.selectOption("[data-key=layer]", { index: layer });
    if (press) await page.click(press);
    await page.$eval(look, (e) => e.scrollIntoView({ block: "center" }));
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(screenshots, file) });
    await context.close();
  }
}

const only = process.env.LIULI_TOUR_ONLY;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const pages = new Map();
  for (const one of cases) if (!only || only.split(",").includes(one.name)) pages.set(one.name, await checkCase(browser, one));
  if (screenshots) await takeScreenshots(browser, pages);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
}
