// How the heap of a page grows while the stream goes on and somebody looks at this and that.

import type { CDPSession } from 'playwright-core';
import type { Browser } from './browser.ts';

/** Screens with charts, tables, a map and lists. */
const LOOKED_AT = ['/', '/topology', '/luns/vm01', '/hosts', '/events', '/alerts', '/'];
const MINUTE_MS = 60_000;
const FIRST_LOOKS = 12;
const QUICK_MS = 300;
const SLOW_MS = 1_000;
export const MIB = 1024 * 1024;

const wait = (ms: number) => new Promise((done) => setTimeout(done, Math.max(0, ms)));

/** What is reachable after everything else was thrown away. */
async function used(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage');
  return (await cdp.send('Runtime.getHeapUsage')).usedSize;
}

export interface Growth {
  first: number;
  /** Bytes that it has more at the end. */
  more: number;
  /** Bytes a minute, by all that was measured in between: the line with the least squares. */
  perMinute: number;
}

/** Looks around every `everyMs`, and measures after each time, for so long. */
export async function growth(browser: Browser, minutes: number, everyMs: number): Promise<Growth> {
  const cdp = await browser.page.context().newCDPSession(browser.page);
  await cdp.send('HeapProfiler.enable');
  const look = async (eachMs: number) => {
    for (const path of LOOKED_AT) {
      await browser.go(path);
      await wait(eachMs);
    }
  };
  // Parts that are loaded once, rings of half an hour, which are made whole, and what the engine learns of code that runs
  // often are there then.
  for (let n = 0; n < FIRST_LOOKS; n++) await look(QUICK_MS);
  const begun = Date.now();
  const seen: [minute: number, bytes: number][] = [[0, await used(cdp)]];
  while (Date.now() - begun < minutes * MINUTE_MS) {
    const next = Date.now() + everyMs;
    await look(SLOW_MS);
    await wait(next - Date.now());
    seen.push([(Date.now() - begun) / MINUTE_MS, await used(cdp)]);
  }
  const first = seen[0]?.[1] ?? 0;
  return { first, more: (seen.at(-1)?.[1] ?? 0) - first, perMinute: slope(seen) };
}

export function slope(points: [x: number, y: number][]): number {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  const under = points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
  return under === 0 ? 0 : over / under;
}
