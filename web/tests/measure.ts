// What the page costs in the browser, measured on a machine that does nothing else: web/tests/measure.ts [MINUTES]
// Twelve live charts at 1 Hz (on a page with nothing else, and those of three overviews), a table of 10,000 LUNs that is scrolled, and how the heap grows over MINUTES of the stream.
// Bars: 5 % of a core, 60 frames a second, 10 MiB in an hour. With MINUTES it fails where the heap grows beyond its part.

import { readdirSync, readFileSync } from 'node:fs';
import type { CDPSession, Page } from 'playwright-core';
import { Browser } from './browser.ts';
import { Daemon } from './daemon.ts';
import { furnish } from './furnish.ts';
import { openTwelve } from './charts/open.ts';
import { enter } from './steps.ts';

const CHARTS = 12;
const CHARTS_S = 60;
/** Percent of a core. */
const CHARTS_BAR = 5;
const HEAP_BAR = 10 * 1024 * 1024;
const HOUR = 60;
const TICKS = 100;

const wait = (seconds: number) => new Promise((done) => setTimeout(done, seconds * 1000));

/** Processor time of a process, in seconds. */
function spent(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = text.slice(text.lastIndexOf(')') + 2).split(' ').slice(11, 13).map(Number);
  return (user + system) / TICKS;
}

/** All that the browser spent: its pages, what draws and what talks. */
function ofBrowser(profile: string): number {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return [{ pid: Number(name), parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]), line: readFileSync(`/proc/${name}/cmdline`, 'utf8') }];
    } catch {
      return [];
    }
  });
  const own = new Set(all.filter((one) => one.line.includes(profile)).map((one) => one.pid));
  for (let before = -1; before !== own.size; ) {
    before = own.size;
    for (const one of all) if (own.has(one.parent)) own.add(one.pid);
  }
  return [...own].reduce((sum, pid) => sum + spent(pid), 0);
}

async function script(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return metrics.find((one) => one.name === 'TaskDuration')?.value ?? 0;
}

/** What these pages and all of the browser spend, in percent of a core. */
async function cost(browser: Browser, pages: Page[]): Promise<{ all: number; own: number }> {
  const sessions = await Promise.all(pages.map((one) => one.context().newCDPSession(one)));
  for (const one of sessions) await one.send('Performance.enable');
  // The frames of the beginning are over.
  await wait(5);
  const before = [ofBrowser(browser.profile), ...(await Promise.all(sessions.map(script)))];
  await wait(CHARTS_S);
  const after = [ofBrowser(browser.profile), ...(await Promise.all(sessions.map(script)))];
  const [all = 0, ...own] = after.map((value, i) => ((value - (before[i] ?? 0)) / CHARTS_S) * 100);
  return { all, own: own.reduce((sum, one) => sum + one, 0) };
}

const said = ({ all, own }: { all: number; own: number }) => `${own.toFixed(1)} % of a core in the pages, ${all.toFixed(1)} % with all of the browser`;

/** Twelve charts on one page, with nothing else: what the bar is about. */
async function twelve(browser: Browser, daemon: Daemon): Promise<void> {
  await browser.page.setViewportSize({ width: 1920, height: 1200 });
  await openTwelve(browser.page, daemon.url);
  const spent = await cost(browser, [browser.page]);
  console.log(`twelve live charts at 1 Hz on one page: ${said(spent)}`);
  if (spent.all > CHARTS_BAR) throw new Error(`twelve charts take ${spent.all.toFixed(1)} %`);
  await browser.page.unrouteAll();
  await browser.page.goto('/');
}

/** Twelve charts, all of them seen: the four of the overview in three pages, with all else that these show. */
async function charts(browser: Browser, daemon: Daemon): Promise<void> {
  const page = browser.page;
  await page.setViewportSize({ width: 1920, height: 1200 });
  await browser.go('/?span=60');
  const pages: Page[] = [page];
  while (pages.length * 4 < CHARTS) {
    const other = await page.context().newPage();
    await other.setViewportSize({ width: 1920, height: 1200 });
    await other.goto(`${daemon.url}/?span=60`);
    pages.push(other);
  }
  for (const one of pages) await one.getByRole('application').nth(3).waitFor();
  console.log(`three overviews, four charts each: ${said(await cost(browser, pages))}`);
  for (const one of pages.slice(1)) await one.close();
}

/** A table of 10,000 LUNs is scrolled for five seconds: frames a second, and the longest one. */
async function scrolled(browser: Browser, daemon: Daemon): Promise<void> {
  const page = browser.page;
  await page.setViewportSize({ width: 1280, height: 800 });
  const [one] = (await fetch(`${daemon.url}/api/v1/luns`).then((answer) => answer.json())) as Record<string, unknown>[];
  const many = Array.from({ length: 10_000 }, (_, i) => ({ ...one, name: `lun-${i}`, serial: `serial-${i}` }));
  await page.route('**/api/v1/luns?without=ops', (route) => route.fulfill({ json: many }));
  await page.goto('/luns');
  await page.getByText('10,000 LUNs').waitFor();
  const { frames, longest } = await page.evaluate(async () => {
    const box = document.querySelector<HTMLElement>('.table');
    const times: number[] = [];
    const begun = performance.now();
    while (performance.now() - begun < 5_000) {
      box?.scrollBy(0, 120);
      times.push(await new Promise<number>((done) => requestAnimationFrame(done)));
    }
    const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    return { frames: (gaps.length / (times.at(-1)! - times[0]!)) * 1000, longest: Math.max(...gaps) };
  });
  console.log(`10,000 LUNs scrolled: ${frames.toFixed(1)} frames a second, the longest ${longest.toFixed(0)} ms`);
  await page.unrouteAll();
}

/** What is reachable after everything else was thrown away. */
async function heap(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage');
  return (await cdp.send('Runtime.getHeapUsage')).usedSize;
}

/** The stream goes on, and people look at this and that: what the heap has more at the end. */
async function grown(browser: Browser, minutes: number): Promise<void> {
  const cdp = await browser.page.context().newCDPSession(browser.page);
  await cdp.send('HeapProfiler.enable');
  const look = async () => {
    for (const path of ['/', '/topology', '/luns/vm01', '/hosts', '/events', '/alerts', '/']) {
      await browser.go(path);
      await wait(1);
    }
  };
  // The page keeps half an hour of figures in rings that are made at once.
  await look();
  await wait(20);
  const first = await heap(cdp);
  const until = Date.now() + minutes * 60_000;
  while (Date.now() < until) {
    await look();
    await wait(Math.min(30, Math.max(0, (until - Date.now()) / 1000)));
  }
  const more = (await heap(cdp)) - first;
  const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(1);
  console.log(`the stream for ${minutes} min: heap ${mib(first)} MiB at first, ${mib(more)} MiB more at the end`);
  if (minutes >= HOUR && more > HEAP_BAR) throw new Error(`the heap has grown by ${mib(more)} MiB`);
}

const minutes = Number(process.argv[2] ?? 0);
const daemon = new Daemon();
await daemon.start();
try {
  furnish(daemon);
  const browser = await Browser.open(daemon.url);
  await enter(browser, daemon.token);
  await wait(10);
  await twelve(browser, daemon);
  await charts(browser, daemon);
  await scrolled(browser, daemon);
  await browser.page.goto('/');
  if (minutes) await grown(browser, minutes);
  await browser.close();
  browser.well();
} finally {
  await daemon.stop();
}
