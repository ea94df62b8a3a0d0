// Every screen: accessible in both themes, in its place on a phone, within the budget; and a table of 10,000 LUNs.

import assert from 'node:assert/strict';
import { availableParallelism, loadavg } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { LabState } from '../src/api/types.ts';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { furnish } from './furnish.ts';
import { withDisks, withRuns } from './made_up.ts';
import { enter } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
const SCREENS = [
  '/', '/topology', '/topology?as=list', '/topology?lost=pool%3Adefault', '/luns', '/luns?do=create', '/luns/vm01?span=60', '/luns/vm01?show=hosts',
  '/luns/vm01?show=settings', '/luns/vm01?show=connect', '/luns/vm01?do=set', '/luns/vm01?do=grow', '/luns/vm01?do=delete', '/hosts', '/hosts?view=paths',
  '/hosts?view=sessions', '/hosts?view=refused', '/hosts/esx01', '/hosts/esx01?do=set', '/targets', '/targets?view=portals', '/targets/vms', '/targets/vms?do=set',
  '/pools', '/pools/default', '/integrity', '/bench', '/bench?do=run', '/lab', '/jobs', '/jobs/1', '/pools?tray=jobs', '/disks',
  '/disks/ZC10003', '/audit', '/audit?result=done&entry=1', '/alerts', '/alerts/1', '/alerts/1?do=mute', '/alerts?show=over',
  '/alerts?show=silences&do=silence', '/alerts?show=rules', '/alerts?show=rules&rule=pool_filling&do=set', '/alerts?show=receivers',
  '/alerts?show=receivers&do=add', '/events', '/settings/account', '/settings/users', '/settings/users?do=add', '/settings/tokens',
  '/settings/tokens?do=make', '/settings/certificate', '/settings/node', '/settings/about', ...['password', 'name', 'pool', 'portals', 'share', 'connect', 'done'].map((step) => `/first-run?step=${step}`),
  '/nothing-here',
];
const RUNS = ['/bench/1', '/bench/compare?a=1&b=2', '/lab/1'];
/** Dialogs whose screens are among the others. */
const DIALOGS = [
  '/luns/vm01?do=rename', '/luns/vm01?do=grant', '/luns/vm01?do=scrub', '/luns/archive?do=restore', '/luns/archive?do=purge', '/hosts?do=add', '/hosts/esx01?do=rename', '/hosts/esx01?do=grant',
  '/targets?do=add', '/targets/vms?do=rename', '/lab?do=start&topology=',
];
/** Bytes, compressed. */
const FIRST_SCRIPTS = 120 * 1024;
const FIRST_STYLES = 20 * 1024;
const ALL = 250 * 1024;
/** The largest paint: the median of so many loads. */
const PAINTED_MS = 1_000;
const LOADS = 5;

interface Window {
  theme?: 'dark' | 'light';
  width?: number;
  height?: number;
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

  test('is accessible (WCAG 2.2 AA) in both themes', {}, async (browser) => {
    const found: string[] = [];
    await withDisks(browser.page);
    await enter(browser, daemon.token);
    const look = async (what: string) => {
      found.push(...(await browser.axe(`${what}, dark`)));
      await browser.page.emulateMedia({ colorScheme: 'light' });
      found.push(...(await browser.axeOfColours(`${what}, light`)));
      await browser.page.emulateMedia({ colorScheme: 'dark' });
    };
    await withRuns(browser.page);
    for (const path of [...SCREENS, ...RUNS]) {
      await browser.go(path);
      await browser.page.waitForTimeout(500);
      await look(path);
    }
    daemon.run('lun', 'delete', 'archive', '--yes');
    const { topologies } = (await (await fetch(`${daemon.url}/api/v1/lab`, { headers: { authorization: `Bearer ${daemon.token}` } })).json()) as LabState;
    for (const path of DIALOGS) {
      await browser.go('/nothing-here');
      await browser.go(path.endsWith('=') ? path + encodeURIComponent(topologies[0]?.id ?? '') : path);
      await browser.page.getByRole('dialog').getByRole('button', { name: 'Cancel', exact: true }).waitFor();
      found.push(...(await browser.axe(`${path}, dark`, 'dialog')));
    }
    await browser.go('/luns');
    await browser.page.keyboard.press('Control+k');
    await browser.page.getByRole('combobox').waitFor();
    await look('the palette');
    assert.deepEqual(found, []);
  });

  test('fits a phone', { width: 390, height: 844 }, async (browser) => {
    await withDisks(browser.page);
    await enter(browser, daemon.token);
    for (const path of SCREENS) {
      await browser.go(path);
      await browser.page.waitForTimeout(350);
      const [wide, window] = await browser.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth] as const);
      assert.ok(wide <= window, `${path} is ${wide} wide, the phone ${window}`);
    }
  });

  test('is loaded within the budget, and asks nobody else', {}, async (browser) => {
    const sizes = new Map<string, number>();
    browser.page.on('response', (response) => {
      const path = new URL(response.url()).pathname;
      if (/\.(js|css)$/.test(path)) sizes.set(path, 0);
    });
    await browser.page.goto('/');
    await browser.page.locator('canvas').nth(3).waitFor();
    const weigh = async () => {
      for (const path of sizes.keys()) {
        const body = await fetch(daemon.url + path, { headers: { 'accept-encoding': 'identity' } });
        sizes.set(path, gzipSync(Buffer.from(await body.arrayBuffer()), { level: 9 }).length);
      }
      const sum = (ending: string) => [...sizes].filter(([path]) => path.endsWith(ending)).reduce((all, [, size]) => all + size, 0);
      return [sum('.js'), sum('.css')] as const;
    };
    const [scripts, styles] = await weigh();
    for (const path of SCREENS) {
      await browser.go(path);
      await browser.page.waitForTimeout(100);
    }
    await browser.page.keyboard.press('Control+k');
    const [allScripts, allStyles] = await weigh();
    console.log(`first load: ${scripts} bytes of scripts, ${styles} of styles; all: ${allScripts + allStyles}`);
    assert.ok(scripts <= FIRST_SCRIPTS && styles <= FIRST_STYLES, `first load: ${scripts} and ${styles} bytes`);
    assert.ok(allScripts + allStyles <= ALL, `all: ${allScripts + allStyles} bytes`);
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
    const counted = () => browser.page.evaluate(async () => {
      const { drawn } = window as unknown as { drawn: { seen: number; unseen: number } };
      Object.assign(drawn, { seen: 0, unseen: 0 });
      await new Promise((done) => setTimeout(done, 3_500));
      return { ...drawn };
    });
    await browser.page.goto('/?span=60');
    const last = browser.page.getByRole('application').nth(3);
    await last.waitFor();
    await browser.page.waitForTimeout(1_500);
    const above = await counted();
    assert.equal(above.unseen, 0, 'charts below the window are drawn');
    await last.scrollIntoViewIfNeeded();
    await browser.page.waitForTimeout(500);
    assert.ok((await counted()).seen >= 3, 'charts in the window are drawn each second');
    assert.ok(await last.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0)));
  });

  test('shows 10,000 LUNs, and filters them in less than a tenth of a second', {}, async (browser) => {
    const [one] = (await fetch(`${daemon.url}/api/v1/luns`).then((answer) => answer.json())) as Record<string, unknown>[];
    const many = Array.from({ length: 10_000 }, (_, i) => ({ ...one, name: `lun-${i}`, serial: `serial-${i}` }));
    await browser.page.route('**/api/v1/luns?without=ops', (route) => route.fulfill({ json: many }));
    await browser.page.goto('/luns');
    await browser.page.getByText('10,000 LUNs').waitFor();
    const rows = () => browser.page.locator('tbody tr').count();
    assert.ok((await rows()) < 80, `${await rows()} rows are in the page`);
    const region = browser.page.getByRole('region', { name: 'LUNs' });
    await region.evaluate((box) => box.scrollTo(0, 300_000));
    await browser.page.getByRole('link', { name: /^lun-7\d\d\d$/ }).first().waitFor();
    const filtered = (text: string) => browser.page.evaluate(async (wanted) => {
      const filter = document.querySelector<HTMLInputElement>('input[type=search]');
      if (!filter) return Infinity;
      const begun = performance.now();
      filter.value = wanted;
      filter.dispatchEvent(new Event('input', { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      return performance.now() - begun;
    }, text);
    // The least of three: a machine that does something else meanwhile is not the page.
    const all = [await filtered('lun-3'), await filtered('lun-77'), await filtered('lun-4242')];
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
    const read = async (what: string) => (await (await fetch(`${daemon.url}/api/v1/${what}`)).json()) as Record<string, unknown>[];
    const [lun, host, grant, session] = (await Promise.all(['luns', 'hosts', 'grants', 'sessions'].map(read))).map((rows) => rows[0]);
    const many = {
      luns: Array.from({ length: 10_000 }, (_, i) => ({ ...lun, name: `lun-${i}`, serial: `serial-${i}` })),
      hosts: Array.from({ length: 256 }, (_, i) => ({ ...host, name: `host-${i}` })),
      grants: Array.from({ length: 10_000 }, (_, i) => ({ ...grant, name: `host-${i % 256}:vms:lun-${i}`, host: `host-${i % 256}`, lun: `lun-${i}` })),
      sessions: Array.from({ length: 512 }, (_, i) => ({ ...session, id: 1000 + i, host: `host-${i >> 1}`, from: `192.0.2.${i % 250}:${i + 1024}` })),
    };
    for (const [what, rows] of Object.entries(many)) await browser.page.route(`**/api/v1/${what}${what === 'luns' ? '?without=ops' : ''}`, (route) => route.fulfill({ json: rows }));
    await browser.page.goto('/topology');
    await browser.page.getByRole('navigation', { name: 'What is drawn' }).getByText('LUNs 1–40 of 10,000').waitFor();
    const drawn = () => browser.page.evaluate(async () => {
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
    });
    const all = [await drawn(), await drawn(), await drawn()];
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
