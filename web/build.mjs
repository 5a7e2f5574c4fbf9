// SPDX-License-Identifier: Apache-2.0
// build.mjs --out DIR [--test]: bundles the page, compresses it, and writes DIR/page_files.cc, which
// the muster binary is linked with, and the files themselves (DIR/files), to be looked at.
// With --test it bundles test/*.test.ts for Node's test runner into DIR instead.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";

// What the binary may carry of the page, compressed.
const kBudget = 150 * 1024;

const web = dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: { out: { type: "string" }, test: { type: "boolean" } },
});
if (!options.out) throw new Error("--out DIR is missing");
const out = resolve(options.out);

const common = {
  absWorkingDir: web,
  bundle: true,
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

async function bundle_tests() {
  const tests = readdirSync(join(web, "test"), { recursive: true })
    .filter((name) => /\.test\.tsx?$/.test(name))
    .map((name) => join("test", name));
  rmSync(out, { recursive: true, force: true });
  await esbuild.build({
    ...common,
    entryPoints: tests,
    outdir: out,
    outbase: "test",
    platform: "node",
    outExtension: { ".js": ".mjs" },
    sourcemap: "inline",
  });
}

async function bundle_page() {
  const result = await esbuild.build({
    ...common,
    entryPoints: { app: "src/main.tsx" },
    outdir: out,
    write: false,
    minify: true,
    legalComments: "none",
    target: ["chrome123", "firefox120", "safari17.5"],
  });
  const files = result.outputFiles.map((file) => ({
    path: `/${file.path.slice(out.length + 1)}`,
    bytes: file.contents,
  }));
  for (const name of readdirSync(join(web, "src/static")).sort()) {
    files.push({
      path: name === "index.html" ? "/" : `/${name}`,
      bytes: readFileSync(join(web, "src/static", name)),
    });
  }
  return files;
}

const kTypes = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

function pack({ path, bytes }) {
  const name = path === "/" ? "index.html" : path.slice(1);
  return {
    path,
    name,
    type: kTypes[name.split(".").pop()],
    bytes,
    gzip: gzipSync(bytes, { level: 9 }),
    etag: createHash("sha256").update(bytes).digest("hex").slice(0, 32),
  };
}

function check_size(files) {
  let total = 0;
  for (const { name, bytes, gzip } of files) {
    total += gzip.length;
    console.log(
      `${name.padEnd(20)} ${String(bytes.length).padStart(8)} ${String(gzip.length).padStart(8)} compressed`,
    );
  }
  console.log(`${"page".padEnd(20)} ${String(total).padStart(17)} of ${kBudget}`);
  if (total > kBudget)
    throw new Error(`the page has ${total} bytes compressed, more than ${kBudget}`);
}

function as_source(files) {
  const arrays = files.map(({ gzip }, i) => {
    const numbers = [...gzip].join(",").replace(/(.{1,110},)/g, "$1\n");
    return `const unsigned char kFile${i}[] = {\n${numbers}};\n`;
  });
  const rows = files.map(
    ({ path, type, etag, bytes }, i) =>
      `    {"${path}", "${type}", "\\"${etag}\\"",\n` +
      `     {reinterpret_cast<const char*>(kFile${i}), sizeof(kFile${i})}, ${bytes.length}},\n`,
  );
  return `// Made by web/build.mjs.
#include "supervisor/status/page_files.h"

namespace muster {
namespace {

${arrays.join("\n")}
const PageFile kFiles[] = {
${rows.join("")}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : kFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace muster
`;
}

if (options.test) {
  await bundle_tests();
} else {
  const files = (await bundle_page()).map(pack);
  mkdirSync(join(out, "files"), { recursive: true });
  for (const { name, bytes } of files) writeFileSync(join(out, "files", name), bytes);
  check_size(files);
  writeFileSync(join(out, "page_files.cc"), as_source(files));
}
