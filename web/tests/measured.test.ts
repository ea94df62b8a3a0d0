// What is measured against a bar: frames, paints, filters, the map. Nothing else runs beside it.

import assert from 'node:assert/strict';
import { availableParallelism, loadavg } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { furnish } from './furnish.ts';
import { columnWidths, filtered, scrolled, topologyDrawn, withManyHosts, withManyLuns, yardstick } from './large.ts';
import { withBrowser } from './own.ts';
import { LONG_MS } from './patience.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
const test = withBrowser(daemon);
/** Work of 33 ms in each frame fails it; on a machine that does nothing else it is 60 (`make page-bench`). */
const FRAMES = 30;
const SCROLLED_MS = 1_500;
/** The largest paint: the median of so many loads. */
const PAINTED_MS = 1_000;
/** What the yardstick takes, slowed down as well, where the bar counts as it stands; docs/performance/page.md. */
const YARDSTICK_MS = 1_200;
const LOADS = 5;

describe('the page, measured', { skip }, () => {
  before(async () => {
    await daemon.start();
    furnish(daemon);
  });
  after(() => daemon.stop());

  test('draws no chart that nobody sees', { height: 420 }, async (browser) => {
    await browser.page.addInitScript(() => {
      const drawn = { seen: 0, unseen: 0 };
      Object.assign(window, { drawn });
      const clear = CanvasRenderingContext2D.prototype.clearRect;
      CanvasRenderingContext2D.prototype.clearRect = function (...area) {
        const { top, bottom } = this.canvas.getBoundingClientRect();
        drawn[bottom > 0 && top < innerHeight ? 'seen' : 'unseen']++;
        return clear.apply(this, area);
      };
    });
    // Until what is seen was drawn by three figures.
    const counted = () => browser.page.evaluate(async () => {
      const { drawn } = window as unknown as { drawn: { seen: number; unseen: number } };
      Object.assign(drawn, { seen: 0, unseen: 0 });
      while (drawn.seen < 6) await new Promise((done) => requestAnimationFrame(done));
      return { ...drawn };
    });
    await browser.page.goto('/?span=60');
    const last = browser.page.getByRole('application').nth(3);
    await last.waitFor();
    await browser.page.locator('canvas').nth(3).waitFor();
    await counted();
    const above = await counted();
    assert.equal(above.unseen, 0, 'charts below the window are drawn');
    await last.scrollIntoViewIfNeeded();
    await counted();
    assert.ok(await last.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0)));
  });

  test('shows 10,000 LUNs, scrolls them smoothly, and filters them in less than a tenth of a second', {}, async (browser) => {
    await withManyLuns(browser.page, daemon);
    await browser.page.goto('/luns');
    await browser.page.getByText('10,000 LUNs').waitFor();
    const rows = () => browser.page.locator('tbody tr').count();
    assert.ok((await rows()) < 80, `${await rows()} rows are in the page`);
    const region = browser.page.getByRole('region', { name: 'LUNs' });
    await region.evaluate((box) => box.scrollTo(0, 300_000));
    await browser.page.getByRole('link', { name: /^lun-7\d\d\d$/ }).first().waitFor();
    // The best of three, and the least of three: a machine that does something else meanwhile is not the page.
    const frames = [await scrolled(browser.page, SCROLLED_MS), await scrolled(browser.page, SCROLLED_MS), await scrolled(browser.page, SCROLLED_MS)].map((one) => Math.round(one.rate));
    console.log(`scrolling 10,000 LUNs: ${frames.join(', ')} frames a second`);
    assert.ok(Math.max(...frames) >= FRAMES, `${frames} frames a second`);
    const all = await filtered(browser.page, ['lun-3', 'lun-77', 'lun-4242']);
    const took = Math.min(...all);
    await browser.page.getByText('1 LUN', { exact: true }).waitFor();
    console.log(`filtering 10,000 LUNs: ${all.map(Math.round).join(', ')} ms`);
    assert.ok(took < 100, `${took} ms`);
  });

  test('keeps the widths of columns while the table is scrolled, and finds them anew when it rests', {}, async (browser) => {
    await withManyLuns(browser.page, daemon, (i) => `${String(i).padStart(5, '0')}${i < 60 ? '' : '-with-a-name-that-is-longer'}`);
    await browser.page.goto('/luns?sort=name');
    await browser.page.getByText('10,000 LUNs').waitFor();
    const { before, meanwhile, after } = await columnWidths(browser.page);
    for (const widths of meanwhile) assert.deepEqual(widths, before);
    assert.ok((after[0] ?? 0) > (before[0] ?? 0) + 50, `${after[0]} px, ${before[0]} before`);
  });

  it('is painted within a second on a processor that is slowed down four times, and when nothing of it is known yet', { timeout: LONG_MS }, async () => {
    // When all that can be read is there, and the charts, which come last.
    const painted = async () => {
      // A new profile: nothing of a load comes from a cache. What the browser itself begins with is over.
      const browser = await Browser.open(daemon.url);
      try {
        await browser.page.waitForTimeout(1_000);
        const cdp = await browser.page.context().newCDPSession(browser.page);
        await cdp.send('Emulation.setCPUThrottlingRate', { rate: 4 });
        await browser.page.goto('/');
        await browser.page.getByText('Refused: ').first().waitFor();
        await browser.page.locator('canvas').nth(3).waitFor();
        const paint = await browser.page.evaluate(() => new Promise<number>((done) => {
          new PerformanceObserver((list) => done(list.getEntries().at(-1)?.startTime ?? Infinity)).observe({ type: 'largest-contentful-paint', buffered: true });
        }));
        return { paint, yard: await yardstick(browser.page) };
      } finally {
        await browser.close();
        browser.well();
      }
    };
    const middle = (all: number[]) => [...all].sort((a, b) => a - b)[LOADS >> 1] ?? Infinity;
    const median = async () => {
      const all: { paint: number; yard: number }[] = [];
      while (all.length < LOADS) all.push(await painted());
      const yards = all.map((it) => it.yard);
      // A slower machine is not the page.
      const slower = Math.max(1, middle(yards) / YARDSTICK_MS);
      console.log(`largest paint: of new profiles ${all.map((it) => Math.round(it.paint)).join(', ')} ms; the yardstick ${yards.map(Math.round).join(', ')} ms, ${slower.toFixed(2)} times the usual; load ${loadavg()[0]?.toFixed(1)} of ${availableParallelism()} cores`);
      return middle(all.map((it) => it.paint)) / slower;
    };
    const first = await median();
    // Once more, where the machine had something else to do.
    const least = first < PAINTED_MS ? first : await median();
    assert.ok(least < PAINTED_MS, `${Math.round(first)} ms, and again ${Math.round(least)} ms`);
  });

  test('draws the topology of 256 hosts and 10,000 LUNs in less than half a second', {}, async (browser) => {
    await withManyHosts(browser.page, daemon);
    const all = await topologyDrawn(browser.page, 3);
    console.log(`the topology of 10,000 LUNs: ${all.map(Math.round).join(', ')} ms`);
    assert.ok(Math.min(...all) < 500, `${all} ms`);
    // Any of them can be come to: the next, the last, one by its name.
    const point = (name: RegExp) => browser.page.getByRole('button', { name });
    await point(/^host 216 more Hosts/).press('Enter');
    await point(/^host host-40 /).waitFor();
    await browser.page.getByRole('button', { name: 'LUNs before these' }).last().click();
    await point(/^LUN lun-9999 /).waitFor();
    await browser.page.getByLabel('Filter hosts and LUNs').fill('host-77');
    await point(/^host host-77 /).press('Enter');
    await browser.page.getByText(/Without host host-77, 1 host would lose/).waitFor();
    await browser.page.unrouteAll({ behavior: 'ignoreErrors' });
  });
});
