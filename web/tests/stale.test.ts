// The daemon is away: every screen says since when, and what is of then is grey.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { openFurnished, placesOf } from './furnish.ts';
import { LONG_MS } from './patience.ts';
import { end, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page } = steps(() => browser);
const since = () => page().getByRole('alert', { name: 'Since when' });
const grey = () => page().getByRole('main').evaluate((main) => getComputedStyle(main).filter === 'grayscale(1)');
/** The page knew of the daemon so many seconds before its end at most: where all is slow, its figures come late. */
const BEFORE = 20;
/** In both themes all of it can be read. */
const READ = ['/', '/topology', '/luns', '/hosts?view=paths', '/pools', '/alerts', '/events', '/jobs/1'];

describe('a daemon that is away', { skip }, () => {
  before(async () => {
    browser = await openFurnished(daemon);
  });
  after(() => end(browser, daemon));

  it('is said on every screen, with since when, and all figures are grey', { timeout: LONG_MS }, async () => {
    // What a screen is made of is loaded when it is opened first.
    const places = await placesOf(daemon);
    for (const path of places) {
      await browser.go(path);
      await browser.settled();
      assert.equal(await since().count(), 0, path);
      assert.equal(await grey(), false, path);
    }
    const killed = Date.now();
    await daemon.kill();
    await since().waitFor();
    for (const path of places) {
      await browser.go(path);
      await browser.settled();
      const [, clock = ''] = /The daemon does not answer since (\d\d:\d\d:\d\d)\./.exec(await since().innerText()) ?? [];
      const at = new Date(killed).toLocaleTimeString('en-GB');
      assert.ok(clock && Math.abs(seconds(clock) - seconds(at)) < BEFORE, `${path}: since ${clock}, it was killed at ${at}`);
      assert.ok(await grey(), `${path} is not grey`);
    }
  });

  it('leaves all of it to be read', { timeout: LONG_MS }, async () => {
    const found: string[] = [];
    for (const path of READ) {
      await browser.go(path);
      await browser.settled();
      found.push(...(await browser.axeInBoth(`${path}, stale`)));
    }
    assert.deepEqual(found, []);
  });

  it('goes on by itself when it is back', async () => {
    await daemon.start();
    await since().waitFor({ state: 'detached' });
    assert.equal(await grey(), false);
  });

  it('leaves a hole in the figures, and no line over it', async () => {
    await browser.go('/?table=IOPS&span=1800');
    const table = page().getByRole('region', { name: 'IOPS, means of 10 s' });
    // The newest is first: figures, then none for as long as it was away, then figures of before.
    await until('figures on both sides of the hole', async () => {
      const cells = await table.locator('tbody tr td:nth-child(2)').allTextContents();
      return /f-+f/.test(cells.map((cell) => (cell === '–' ? '-' : 'f')).join(''));
    });
  });
});

/** Of a time of day. */
function seconds(clock: string): number {
  const [hour = 0, minute = 0, second = 0] = clock.split(':').map(Number);
  return (hour * 60 + minute) * 60 + second;
}
