// Compresses the built page once, as well as can be, so that the daemon sends it as it is.

import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const COMPRESSES = /\.(html|js|css|svg|json|txt)$/;
/** A form that does not save at least this part is not kept. */
const SAVES = 0.9;

function compress(file: string): void {
  const plain = readFileSync(file);
  const forms: [string, Buffer][] = [
    ['br', brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } })],
    ['gz', gzipSync(plain, { level: 9 })],
  ];
  for (const [ending, form] of forms) {
    if (form.length < plain.length * SAVES) writeFileSync(`${file}.${ending}`, form);
  }
}

function walk(dir: string): void {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) walk(path);
    else if (COMPRESSES.test(name)) compress(path);
  }
}

const dir = process.argv[2];
if (!dir) throw new Error('usage: compress.ts DIRECTORY');
walk(dir);
