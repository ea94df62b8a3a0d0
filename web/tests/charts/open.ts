// The page of twelve charts, built as the product's own page is, and shown at an address of the daemon.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import type { Page } from 'playwright-core';
import { build } from 'vite';

const KINDS: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.html': 'text/html', '.woff2': 'font/woff2' };
/** No path of the daemon's. */
const BASE = '/twelve-charts/';

export async function openTwelve(page: Page, origin: string): Promise<void> {
  const outDir = mkdtempSync(join(tmpdir(), 'causeway-charts-'));
  const root = import.meta.dirname;
  await build({ root, base: BASE, configFile: false, logLevel: 'warn', plugins: [svelte({ configFile: join(root, '../../svelte.config.js') })], build: { target: 'es2022', outDir, emptyOutDir: true, assetsInlineLimit: 0 } });
  const files = new Map<string, Buffer>();
  await page.route((url) => url.pathname.startsWith(BASE), (route) => {
    const path = new URL(route.request().url()).pathname.slice(BASE.length) || 'index.html';
    const file = join(outDir, path);
    if (!files.has(path) && existsSync(file)) files.set(path, readFileSync(file));
    return route.fulfill({ body: files.get(path) ?? '', headers: { 'content-type': KINDS[extname(path)] ?? '' } });
  });
  await page.goto(origin + BASE);
  await page.getByRole('application').nth(11).waitFor();
  rmSync(outDir, { recursive: true, force: true });
}
