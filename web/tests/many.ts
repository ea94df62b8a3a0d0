// The page and a daemon that has 10,000 real LUNs: web/tests/many.ts
// Bytes and processor time of the list of LUNs, how the table scrolls and filters while four of them are under load, and
// what the daemon spends on one who looks; it fails where a bar is missed. A LUN in a pool takes two files that are open: those beyond 4,000 are in memory.

import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { Browser } from './browser.ts';
import { Daemon } from './daemon.ts';
import { filtered, scrolled } from './large.ts';
import { enter } from './steps.ts';

const LUNS = 10_000;
const IN_FILES = 4_000;
const GRANTED_EACH = 50;
const ASKED = 10;
/** Long enough for two answers with all LUNs. */
const SCROLLED_MS = 36_000;
/** 60 a second, but for one frame of each: new lists come meanwhile. */
const FRAMES_BAR = 59;
const FILTER_BAR_MS = 100;
const HOST = 'iqn.1998-01.com.vmware:esx01';

const wait = (seconds: number) => new Promise((done) => setTimeout(done, seconds * 1000));
const name = (i: number) => `lun-${String(i).padStart(5, '0')}`;

function manifest(): string {
  const luns = Array.from({ length: LUNS }, (_, i) => `[[lun]]\nname = "${name(i)}"\nsize = "1GiB"\n${i < IN_FILES ? '' : 'backend = "memory"\n'}`);
  const grants = Array.from({ length: LUNS / GRANTED_EACH }, (_, i) => `[[grant]]\nhost = "esx01"\nlun = "${name(i * GRANTED_EACH)}"\ntarget = "vms"\nlun_id = ${i}\n`);
  return `${luns.join('')}[[target]]\nname = "vms"\n[[host]]\nname = "esx01"\niqn = ["${HOST}"]\n${grants.join('')}`;
}

/** Processor time of the daemon, in seconds. */
function spent(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = text.slice(text.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number);
  return (user + system) / 100;
}

async function share(pid: number, seconds: number): Promise<string> {
  const before = spent(pid);
  await wait(seconds);
  return `${(((spent(pid) - before) / seconds) * 100).toFixed(1)} % of a core`;
}

function answers(daemon: Daemon, pid: number): void {
  for (const path of ['luns', 'luns?without=ops', 'activity']) {
    for (const coding of ['identity', 'gzip']) {
      const before = spent(pid);
      let said = '';
      for (let n = 0; n < ASKED; n++) {
        said = spawnSync('curl', ['-s', '-H', `accept-encoding: ${coding}`, '-o', '/dev/null', '-w', '%{size_download} bytes in %{time_total} s', `${daemon.url}/api/v1/${path}`], { encoding: 'utf8' }).stdout;
      }
      console.log(`${path}, ${coding}: ${said}, ${(((spent(pid) - before) / ASKED) * 1000).toFixed(0)} ms of the daemon's processor`);
    }
  }
}

async function frames(page: Page): Promise<number> {
  const { rate, gaps } = await scrolled(page, SCROLLED_MS);
  const slow = gaps.filter((gap) => gap > 34).map(Math.round);
  console.log(`scrolled: ${rate.toFixed(1)} frames a second; of ${gaps.length} frames those beyond 34 ms took ${slow.join(', ') || 'none'}`);
  return rate;
}

async function slowestFilter(page: Page): Promise<number> {
  const all = await filtered(page, ['lun-03', 'lun-077', 'lun-04242', '']);
  console.log(`filtered: ${all.map(Math.round).join(', ')} ms`);
  return Math.max(...all);
}

const daemon = new Daemon();
let browser: Browser | undefined;
try {
  await daemon.start();
  const file = join(daemon.dir, 'many.toml');
  writeFileSync(file, manifest());
  const begun = Date.now();
  daemon.run('apply', '-f', file, '--yes');
  console.log(`${LUNS} LUNs applied in ${((Date.now() - begun) / 1000).toFixed(0)} s`);
  for (let i = 0; i < 4; i++) daemon.load(HOST, 11 + i, 1, 'vms', i * 3, '-o2', '-w30', '-g500');
  await wait(5);
  const pid = daemon.pid;
  answers(daemon, pid);
  console.log(`the daemon, nobody looks: ${await share(pid, 20)}`);
  browser = await Browser.open(daemon.url);
  await enter(browser, daemon.token);
  const page = browser.page;
  const opened = Date.now();
  await page.goto('/luns');
  await page.getByText(`${LUNS.toLocaleString('en')} LUNs`).first().waitFor();
  console.log(`the table is shown after ${Date.now() - opened} ms`);
  await wait(5);
  console.log(`the daemon, one looks: ${await share(pid, 20)}`);
  const rate = await frames(page);
  const slowest = await slowestFilter(page);
  await browser.go('/luns?sort=-iops');
  await page.locator('tbody tr').first().getByText(/\/s/).waitFor();
  console.log(`first by IOPS: ${(await page.locator('tbody tr').first().innerText()).replaceAll(/\s+/g, ' ')}`);
  if (rate < FRAMES_BAR || slowest >= FILTER_BAR_MS) throw new Error(`missed: ${rate.toFixed(1)} frames a second (the bar is 60), filtered in ${slowest.toFixed(0)} ms (${FILTER_BAR_MS})`);
} finally {
  await browser?.close();
  await daemon.stop();
}
browser?.well();
