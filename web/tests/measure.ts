// What the page costs in the browser, measured on a machine that does nothing else: web/tests/measure.ts [MINUTES]
// Twelve live charts at 1 Hz (on a page with nothing else, and those of three overviews), a table of 10,000 LUNs that is
// scrolled and filtered, the topology of 256 hosts, and with MINUTES how the heap grows while the stream goes on.
// It says which bar is missed, and ends with 1 then: `make page-bench`.

import { readdirSync, readFileSync } from 'node:fs';
import type { CDPSession, Page } from 'playwright-core';
import { Browser } from './browser.ts';
import { Daemon } from './daemon.ts';
import { furnish } from './furnish.ts';
import { growth, MIB } from './heap.ts';
import { filtered, scrolled, topologyDrawn, withManyHosts, withManyLuns } from './large.ts';
import { openTwelve } from './charts/open.ts';
import { enter } from './steps.ts';

const CHARTS = 12;
const CHARTS_S = 60;
/** Percent of a core. */
const CHARTS_BAR = 5;
const HEAP_BAR = 10 * MIB;
/** 60 a second, by a clock that begins and ends within a frame. */
const FRAMES_BAR = 59;
const FILTER_BAR_MS = 100;
const MAP_BAR_MS = 500;
const HOUR = 60;
const TICKS = 100;

const bars: string[] = [];
const missed = (bar: string) => void bars.push(bar);
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
  if (spent.all > CHARTS_BAR) missed(`twelve charts take ${spent.all.toFixed(1)} % of a core; the bar is ${CHARTS_BAR}`);
  await browser.page.unrouteAll({ behavior: 'ignoreErrors' });
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

/** A table of 10,000 LUNs is scrolled for five seconds, and filtered. */
async function table(page: Page, daemon: Daemon): Promise<void> {
  await page.setViewportSize({ width: 1280, height: 800 });
  await withManyLuns(page, daemon);
  await page.goto('/luns');
  await page.getByText('10,000 LUNs').waitFor();
  const { rate, gaps } = await scrolled(page, 5_000);
  console.log(`10,000 LUNs scrolled: ${rate.toFixed(1)} frames a second, the longest ${Math.max(...gaps).toFixed(0)} ms`);
  if (rate < FRAMES_BAR) missed(`${rate.toFixed(1)} frames a second while the table is scrolled; the bar is 60`);
  const all = await filtered(page, ['lun-3', 'lun-77', 'lun-4242', '']);
  console.log(`10,000 LUNs filtered: ${all.map(Math.round).join(', ')} ms`);
  if (Math.max(...all) >= FILTER_BAR_MS) missed(`a filter takes ${Math.round(Math.max(...all))} ms; the bar is ${FILTER_BAR_MS}`);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
}

async function map(page: Page, daemon: Daemon): Promise<void> {
  await withManyHosts(page, daemon);
  const all = await topologyDrawn(page, 5);
  console.log(`the topology of 256 hosts and 10,000 LUNs: ${all.map(Math.round).join(', ')} ms`);
  if (Math.max(...all) >= MAP_BAR_MS) missed(`the topology takes ${Math.round(Math.max(...all))} ms; the bar is ${MAP_BAR_MS}`);
  await page.unrouteAll({ behavior: 'ignoreErrors' });
}

/** The stream goes on, and people look at this and that: what the heap has more at the end. */
async function grown(browser: Browser, minutes: number): Promise<void> {
  const { first, more, perMinute } = await growth(browser, minutes, 30_000);
  const mib = (bytes: number) => (bytes / MIB).toFixed(1);
  console.log(`the stream for ${minutes} min: heap ${mib(first)} MiB at first, ${mib(more)} MiB more at the end, ${mib(perMinute * HOUR)} an hour by its slope`);
  // In less than an hour the slope is what can be held.
  const inAnHour = minutes >= HOUR ? more : perMinute * HOUR;
  if (inAnHour > HEAP_BAR) missed(`the heap grows by ${mib(inAnHour)} MiB in an hour; the bar is ${mib(HEAP_BAR)}`);
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
  await table(browser.page, daemon);
  await map(browser.page, daemon);
  await browser.page.goto('/');
  if (minutes) await grown(browser, minutes);
  await browser.close();
  browser.well();
} finally {
  await daemon.stop();
}
for (const bar of bars) console.error(`missed: ${bar}`);
process.exitCode = bars.length > 0 ? 1 : 0;
