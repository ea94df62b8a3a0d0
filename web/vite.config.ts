import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Where a daemon serves while the page is worked on: CAUSEWAY_API=http://127.0.0.1:8480 npx vite
const daemon = process.env['CAUSEWAY_API'] ?? 'http://127.0.0.1:8480';

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // scripts/web copies what has changed to dist, so that cargo builds no more than it must.
    outDir: process.env['CAUSEWAY_PAGE_OUT'] ?? '../target/page',
    emptyOutDir: true,
    // What is inlined would need a looser Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One file, compressed as one, is half of what a file for each part was: 10 KB instead of 19.
    cssCodeSplit: false,
    // What several lazy screens share is one file as well: with one for each set of them there were 59 files, and 7 % more.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 2 }, { name: 'first', tags: ['$initial'], priority: 1 }] } } },
  },
  server: { proxy: { '/api': daemon } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
