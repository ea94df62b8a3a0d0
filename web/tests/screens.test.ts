// Every screen: accessible in both themes, in its place on a phone, within the budget; and a table of 10,000 LUNs.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { enterWithAll, furnish, placesOf } from './furnish.ts';
import { everyDialog, reached } from './dialogs.ts';
import { growth, MIB, type Growth } from './heap.ts';
import { filtered, scrolled, topologyDrawn, withManyHosts, withManyLuns } from './large.ts';
import { SCREENS } from './places.ts';
import { logInAs } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
/** Bytes, compressed. */
const FIRST_SCRIPTS = 120 * 1024;
const FIRST_STYLES = 20 * 1024;
const ALL = 250 * 1024;
const SOURCES = join(import.meta.dirname, '..', 'src');
/** The undo of a grant, which is offered where it was taken away; and a link of the lab, which is cut by a click. */
const WITHOUT_DIALOG = ['to host ${host} again', 'Link ${link}'];
/** What scripts/web has built, and the program serves. */
const PAGE = process.env['PAGE_FROM'] ?? join(import.meta.dirname, '..', 'dist');
/** Work of 33 ms in each frame fails it; on a machine that does nothing else it is 60 (`make page-bench`). */
const FRAMES = 30;
const SCROLLED_MS = 1_500;
/** A stream of so many minutes, while the first sweeps go on. */
const STREAM_MINUTES = 3;
const MEASURED_EVERY_MS = 15_000;
/** In an hour, as the slope has it. The bar of a real hour is 10 MiB; a short run has a slope of its own, of 9 to 12. */
const HEAP_AN_HOUR = 30 * MIB;
/** The largest paint: the median of so many loads. */
const PAINTED_MS = 1_000;
const LOADS = 5;

const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 800 };

interface Window {
  theme?: 'dark' | 'light';
  width?: number;
  height?: number;
}

/** What is beyond the right edge and cannot be scrolled to, or is wider than the box that cuts it. */
function beyond(): string[] {
  const found: string[] = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const scrolls = (one: Element) => /auto|scroll/.test(getComputedStyle(one).overflowX);
  const within = document.querySelector('dialog[open]') ?? document.body;
  for (const one of within.querySelectorAll<HTMLElement | SVGElement>('button, a[href], input, select, textarea, p, td, th, h1, h2, dd, svg, .state')) {
    if (!one.checkVisibility({ visibilityProperty: true }) || one.closest('.unseen, .skip, .who, .search')) continue;
    const { right, left, width, height } = one.getBoundingClientRect();
    const frame = one.closest('.card, ul.list, dialog')?.getBoundingClientRect().right ?? innerWidth;
    if (width < 2 || height < 2 || (right <= Math.min(frame, innerWidth) + 1 && left >= -1)) continue;
    let box = one.parentElement;
    while (box && !scrolls(box)) box = box.parentElement;
    if (!box) found.push(`${one.outerHTML.slice(0, 120)} from ${Math.round(left)} to ${Math.round(right)}`);
  }
  for (const one of within.querySelectorAll('[role=group] button')) {
    const text = document.createRange();
    text.selectNodeContents(one);
    if (new Set([...text.getClientRects()].map((line) => Math.round(line.top / 8))).size > 1) found.push(`${one.textContent} is on two lines`);
  }
  return found.slice(0, 6);
}

/** As it is sent: a font is compressed already. */
function weight(path: string, body: Buffer): number {
  return path.endsWith('.woff2') ? body.length : gzipSync(body, { level: 9 }).length;
}

function sources(which: RegExp): [path: string, text: string][] {
  return readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((path) => which.test(path)).map((path) => [path, readFileSync(join(SOURCES, path), 'utf8')]);
}

/** Of all changes that the page can make, as patterns, but for those that no dialog asks about. */
function titlesOfChanges(): RegExp[] {
  const found = sources(/^lib\/(?!.*\.test).*\.ts$/).flatMap(([, text]) =>
    [...text.matchAll(/\btitle: (['`])([^\n]*?)\1,[^\n]*\n?[^\n]*(?:verb|method):|\bset\([^\n]*(['`])([^\n]*?)\3, fields\)/g)].map((one) => one[2] ?? one[4] ?? ''),
  );
  assert.ok(found.length > 35, `${found.length} changes`);
  return found.filter((title) => !WITHOUT_DIALOG.some((part) => title.includes(part))).map((title) =>
    new RegExp(`^${title.split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/).map((part) => part.replace(/[.*+?^$()|[\]\\]/g, '\\$&')).join('.+')}$`));
}

/** A test with a browser of its own, which is closed whatever happens. */
function test(name: string, window: Window, run: (browser: Browser) => Promise<void>): void {
  it(name, { timeout: 420_000 }, async () => {
    const browser = await Browser.open(daemon.url, window.theme, window.width, window.height);
    try {
      await run(browser);
    } finally {
      await browser.close();
    }
    browser.well();
  });
}

describe('every screen', { skip }, () => {
  before(async () => {
    await daemon.start();
    furnish(daemon);
  });
  after(() => daemon.stop());

  test('is in the list of places', {}, async (browser) => {
    await browser.page.goto('/');
    const links = browser.page.getByRole('navigation', { name: 'Screens' }).getByRole('link');
    const all = await links.evaluateAll((found) => found.map((link) => new URL((link as HTMLAnchorElement).href).pathname));
    const missing = all.filter((path) => !SCREENS.some((place) => place === path || place.startsWith(`${path}/`)));
    assert.ok(all.length >= 15, `${all.length} links`);
    assert.deepEqual(missing, []);
  });

  it('has each use of a dialog in the list of dialogs', () => {
    const found = reached();
    const missing = sources(/\.svelte$/).flatMap(([path, text]) => {
      const uses = [...text.matchAll(/<(Dialog|ChangeDialog|Conflict|Login)\b/g)].length;
      const component = path.replace(/\.svelte$/, '').replace(/^screens\//, '');
      // What shows the login is the page itself, at any place.
      return uses > (found.get(component) ?? 0) && path !== 'App.svelte' ? [`${component}: ${uses} uses`] : [];
    });
    assert.deepEqual(missing, []);
  });

  /** Shows each place to whoever has logged in, and the palette. */
  async function everywhere(browser: Browser, look: (what: string) => Promise<void>): Promise<void> {
    await enterWithAll(browser, daemon);
    for (const path of await placesOf(daemon)) {
      await browser.go(path);
      await browser.settled();
      await look(path);
    }
    await browser.go('/luns');
    await browser.settled();
    await browser.page.keyboard.press('Control+k');
    await browser.page.getByRole('combobox').waitFor();
    await look('the palette');
  }

  /** In a browser of its own, beside the two sweeps that follow. */
  let stream: Promise<Growth>;
  it('is opened by somebody who keeps looking', async () => {
    const browser = await Browser.open(daemon.url);
    await logInAs(browser, 'anna', daemon.password);
    stream = growth(browser, STREAM_MINUTES, MEASURED_EVERY_MS).finally(() => browser.close());
    // What went wrong is said where it is waited for.
    stream.catch(() => undefined);
  });

  test('is accessible (WCAG 2.2 AA) in both themes', {}, async (browser) => {
    const found: string[] = [];
    await everywhere(browser, async (what) => void found.push(...(await browser.axeInBoth(what))));
    assert.deepEqual(found, []);
  });

  test('has dialogs that are accessible in both themes, and fit a phone', {}, async (browser) => {
    const found: string[] = [];
    const titles: string[] = [];
    await everyDialog(browser, daemon, async (what, title) => {
      titles.push(title);
      found.push(...(await browser.axeInBoth(what, 'dialog')));
      await browser.page.setViewportSize(PHONE);
      found.push(...(await browser.page.evaluate(beyond)).map((one) => `${what}: ${one}`));
      await browser.page.setViewportSize(DESK);
    });
    assert.deepEqual(found, []);
    // A change whose dialog this has not come to.
    assert.deepEqual(titlesOfChanges().filter((pattern) => !titles.some((title) => pattern.test(title))).map(String), []);
  });

  test('fits a phone', PHONE, async (browser) => {
    const cut: string[] = [];
    await everywhere(browser, async (what) => {
      cut.push(...(await browser.page.evaluate(beyond)).map((one) => `${what}: ${one}`));
      const current = browser.page.getByRole('navigation', { name: 'Screens' }).locator('a[aria-current]');
      if (await current.count()) {
        const { left, right } = await current.evaluate((link) => link.getBoundingClientRect());
        if (left < 0 || right > 390) cut.push(`${what}: the bar does not show the screen, ${left} to ${right}`);
      }
    });
    assert.deepEqual(cut, []);
  });

  it('does not grow while the stream goes on', { timeout: 300_000 }, async () => {
    const { first, more, perMinute } = await stream;
    const said = `the heap in ${STREAM_MINUTES} minutes of the stream: ${(first / MIB).toFixed(1)} MiB at first, ${(more / MIB).toFixed(2)} more, ${((perMinute * 60) / MIB).toFixed(1)} an hour by its slope`;
    console.log(said);
    assert.ok(perMinute * 60 < HEAP_AN_HOUR, said);
  });

  test('is loaded within the budget, and asks nobody else', {}, async (browser) => {
    const sent = new Map<string, number>();
    const coming: Promise<unknown>[] = [];
    browser.page.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith('/api/')) coming.push(response.body().then((body) => sent.set(pathname.slice(1) || 'index.html', weight(pathname, body))));
    });
    const weigh = async (ending: RegExp) => {
      await Promise.all(coming);
      return [...sent].filter(([path]) => ending.test(path)).reduce((all, [, size]) => all + size, 0);
    };
    await browser.page.goto('/');
    await browser.page.locator('canvas').nth(3).waitFor();
    const scripts = await weigh(/\.js$/);
    const styles = await weigh(/\.css$/);
    assert.ok(await weigh(/\.woff2$/) > 10_000, 'the font is not among what is counted');
    // All that the program has, whether this run comes to it or not: each lazy part, the font, the icon.
    const parts = readdirSync(PAGE, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile() && !/^\.|\.(br|gz)$/.test(file.name))
      .map((file) => relative(PAGE, join(file.parentPath, file.name)));
    const all = parts.reduce((sum, path) => sum + weight(path, readFileSync(join(PAGE, path))), 0);
    assert.deepEqual([...sent.keys()].filter((path) => !parts.includes(path)), [], 'loaded, and not counted');
    const font = parts.filter((path) => path.endsWith('.woff2')).reduce((sum, path) => sum + weight(path, readFileSync(join(PAGE, path))), 0);
    console.log(`first load: ${scripts} bytes of scripts, ${styles} of styles; all: ${all}, of which the font is ${font}`);
    assert.ok(scripts <= FIRST_SCRIPTS && styles <= FIRST_STYLES, `first load: ${scripts} and ${styles} bytes`);
    assert.ok(all <= ALL, `all: ${all} bytes`);
  });

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

  it('is painted within a second on a processor that is slowed down four times, and when nothing of it is known yet', { timeout: 180_000 }, async () => {
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
        return await browser.page.evaluate(() => new Promise<number>((done) => {
          new PerformanceObserver((list) => done(list.getEntries().at(-1)?.startTime ?? Infinity)).observe({ type: 'largest-contentful-paint', buffered: true });
        }));
      } finally {
        await browser.close();
        browser.well();
      }
    };
    const median = async () => {
      const all: number[] = [];
      while (all.length < LOADS) all.push(await painted());
      console.log(`largest paint: of new profiles ${all.map(Math.round).join(', ')} ms, load ${loadavg()[0]?.toFixed(1)} of ${availableParallelism()} cores`);
      return [...all].sort((a, b) => a - b)[LOADS >> 1] ?? Infinity;
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
    await browser.page.unrouteAll();
  });
});
