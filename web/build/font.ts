// What the page needs of its font: Latin letters and the signs that its sources have, the weights that it uses, figures
// of one width. Names in other scripts are shown by the system's font, as before.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import subset from 'subset-font';

const WHOLE = 'node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2';
/** Named in tokens.css and index.html. */
const MADE = 'node_modules/.font/inter.woff2';
const WEIGHTS = { min: 400, max: 700 };
/** Without `calt` and the alternates, a half of the file, which nothing asks for. */
const FEATURES = ['kern', 'ccmp', 'locl', 'mark', 'mkmk', 'tnum'];
/** Latin letters of western Europe, with all signs of ASCII. */
const LATIN: [number, number][] = [[0x20, 0x7e], [0xa0, 0xff]];

/** All signs that the sources have, in a comment or not. */
function signs(dir: string): string {
  return readdirSync(dir).map((name) => {
    const path = join(dir, name);
    return statSync(path).isDirectory() ? signs(path) : readFileSync(path, 'utf8');
  }).join('');
}

const latin = LATIN.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => String.fromCodePoint(first + i)));
const wanted = new Set([...latin, ...signs('src')]);
mkdirSync(dirname(MADE), { recursive: true });
writeFileSync(MADE, await subset(readFileSync(WHOLE), [...wanted].join(''), { targetFormat: 'woff2', variationAxes: { wght: WEIGHTS }, keepFeatures: FEATURES }));
