// A node with 10,000 LUNs and 256 hosts, as the page is told of it, and how fast the page is with it: frames while the
// table is scrolled, a filter, the topology. Tests and measurements ask the same.

import type { Page } from 'playwright-core';
import type { Daemon } from './daemon.ts';

const LUNS = 10_000;
const HOSTS = 256;

type Row = Record<string, unknown>;

async function read(daemon: Daemon, what: string): Promise<Row> {
  const [first] = (await (await fetch(`${daemon.url}/api/v1/${what}`)).json()) as Row[];
  if (!first) throw new Error(`there are no ${what}`);
  return first;
}

const tell = (page: Page, what: string, rows: Row[]) => page.route(`**/api/v1/${what}${what === 'luns' ? '?without=ops' : ''}`, (route) => route.fulfill({ json: rows }));

/** Rows like the first of this daemon's; `named`: what they are called. */
export async function withManyLuns(page: Page, daemon: Daemon, named = (i: number) => `lun-${i}`): Promise<void> {
  const lun = await read(daemon, 'luns');
  await tell(page, 'luns', Array.from({ length: LUNS }, (_, i) => ({ ...lun, name: named(i), serial: `serial-${i}` })));
}

export async function withManyHosts(page: Page, daemon: Daemon): Promise<void> {
  const [host, grant, session] = await Promise.all(['hosts', 'grants', 'sessions'].map((what) => read(daemon, what)));
  await withManyLuns(page, daemon);
  await tell(page, 'hosts', Array.from({ length: HOSTS }, (_, i) => ({ ...host, name: `host-${i}` })));
  await tell(page, 'grants', Array.from({ length: LUNS }, (_, i) => ({ ...grant, name: `host-${i % HOSTS}:vms:lun-${i}`, host: `host-${i % HOSTS}`, lun: `lun-${i}` })));
  await tell(page, 'sessions', Array.from({ length: 2 * HOSTS }, (_, i) => ({ ...session, id: 1000 + i, host: `host-${i >> 1}`, from: `192.0.2.${i % 250}:${i + 1024}`, luns: [{ lun_id: 0, lun: `lun-${i >> 1}`, read_only: false }] })));
}

export interface Frames {
  /** Frames a second. */
  rate: number;
  /** Milliseconds from one to the next. */
  gaps: number[];
}

/** The table that is shown is scrolled by a part of it in each frame. */
export async function scrolled(page: Page, ms: number): Promise<Frames> {
  return page.evaluate(async (until) => {
    const box = document.querySelector<HTMLElement>('.table');
    if (!box) throw new Error('there is no table');
    const times: number[] = [];
    const begun = performance.now();
    const from = box.scrollTop;
    while (performance.now() - begun < until) {
      box.scrollBy(0, 120);
      times.push(await new Promise<number>((done) => requestAnimationFrame(done)));
    }
    if (box.scrollTop === from) throw new Error('the table has not moved');
    const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    return { rate: (gaps.length / ((times.at(-1) ?? 0) - (times[0] ?? 0))) * 1000, gaps };
  }, ms);
}

/** Widths of the columns while the table is scrolled far down, frame by frame, and when it has come to rest. */
export async function columnWidths(page: Page): Promise<{ before: number[]; meanwhile: number[][]; after: number[] }> {
  return page.evaluate(async () => {
    const box = document.querySelector<HTMLElement>('.table');
    if (!box) throw new Error('there is no table');
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const widths = () => [...box.querySelectorAll('th')].map((it) => Math.round(it.getBoundingClientRect().width));
    const before = widths();
    const meanwhile: number[][] = [];
    for (let step = 0; step < 60; step++) {
      box.scrollBy(0, 120);
      await frame();
      await frame();
      meanwhile.push(widths());
    }
    while (box.querySelector('table.fixed')) await frame();
    return { before, meanwhile, after: widths() };
  });
}

/** Milliseconds until what fits is painted, for each text. */
export async function filtered(page: Page, texts: string[]): Promise<number[]> {
  const all: number[] = [];
  for (const text of texts) {
    all.push(await page.evaluate(async (wanted) => {
      const filter = document.querySelector<HTMLInputElement>('input[type=search]');
      if (!filter) return Infinity;
      const begun = performance.now();
      filter.value = wanted;
      filter.dispatchEvent(new Event('input', { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - begun;
    }, text));
  }
  return all;
}

/** Milliseconds until the map is painted, each time from another screen. */
export async function topologyDrawn(page: Page, times: number): Promise<number[]> {
  await page.goto('/topology');
  await page.getByRole('navigation', { name: 'What is drawn' }).getByText(`LUNs 1–40 of ${LUNS.toLocaleString('en')}`).waitFor();
  const all: number[] = [];
  while (all.length < times) {
    all.push(await page.evaluate(async () => {
      const to = (path: string) => {
        history.pushState(null, '', path);
        dispatchEvent(new PopStateEvent('popstate'));
      };
      const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      to('/pools');
      await painted();
      const begun = performance.now();
      to('/topology');
      while (!document.querySelector('.point')) await painted();
      return performance.now() - begun;
    }));
  }
  return all;
}

/** Milliseconds of a piece of work that never changes, scripts and layout as a page has them: how fast this browser is here and now. */
export async function yardstick(page: Page): Promise<number> {
  return page.evaluate(() => {
    const begun = performance.now();
    for (let round = 0; round < 5; round++) {
      const box = document.createElement('div');
      for (let i = 0; i < 2_000; i++) {
        const line = document.createElement('p');
        line.textContent = `line ${i} of round ${round}, ${(i * 7919) % 1_000}`;
        box.append(line);
      }
      document.body.append(box);
      if (box.offsetHeight === 0) throw new Error('nothing was laid out');
      box.remove();
      const all = Array.from({ length: 20_000 }, (_, i) => ({ name: `n${(i * 7919) % 20_011}`, value: i }));
      all.sort((a, b) => (a.name < b.name ? -1 : 1));
      JSON.parse(JSON.stringify(all));
    }
    return performance.now() - begun;
  });
}
