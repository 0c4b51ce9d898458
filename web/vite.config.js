// One file: the script and the style end up inside index.html, so that the page opens from disk and from a mail.
import { defineConfig } from "vite";

function oneFile() {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const page = bundle["index.html"];
      let html = page.source.replace(/\s*<(script type="module"|link rel="stylesheet"|link rel="modulepreload")[^>]*>(<\/script>)?/g, "");
      for (const [name, part] of Object.entries(bundle)) {
        if (name === "index.html") continue;
        const text = part.type === "chunk" ? part.code : part.source;
        // A script stands last, behind the data it reads; "</script" inside it would end it.
        html = part.type === "chunk"
          ? html.replace("</body>", () => `<script>${text.trim().replace(/<\/script/g, "<\\/script")}</script>\n</body>`)
          : html.replace("</head>", () => `<style>${String(text).trim()}</style>\n</head>`);
        delete bundle[name];
      }
      page.source = html;
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [oneFile()],
  build: {
    target: "es2020",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1 << 20,
    rollupOptions: { output: { format: "iife", inlineDynamicImports: true } },
  },
});
