// What was recorded before the page was opened is shown when it is: of LUNs, hosts, targets, pools and their journals.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { columnsOf, type RecordedMap } from '../src/lib/heat.ts';
import type { History } from '../src/live/past.svelte.ts';
import { Browser, here } from './browser.ts';
import { Daemon } from './daemon.ts';
import { LATE_MS } from './patience.ts';
import { enter, steps, until } from './steps.ts';

const skip = here ? false : 'chromium is not here';
const daemon = new Daemon();
let browser: Browser;
const { page, button, text } = steps(() => browser);

const ESX = 'iqn.1998-01.com.vmware:esx01';
/** Seconds since 1970 of when the page was opened. */
let opened = 0;
/** What the page asked of the history. */
const asked: string[] = [];

/** The rows of a table with figures, cell by cell, once one of them satisfies. */
async function rows(name: RegExp, satisfies: (cells: string[]) => boolean): Promise<string[][]> {
  const table = page().getByRole('region', { name });
  let all: string[][] = [];
  await until(`a row of ${name} satisfies`, async () => {
    all = await table.locator('tbody tr:not(.event)').evaluateAll((found) => found.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent.trim())));
    return all.some(satisfies);
  }, LATE_MS);
  return all;
}

/** A chart as a table, once a row of it has a figure. */
async function charted(title: string): Promise<string[][]> {
  await button(`${title} as a table`).click();
  const name = new RegExp(`^${title.replaceAll(/[()]/g, '.')},`);
  return rows(name, (cells) => cells.slice(1).some((cell) => /[1-9]/.test(cell)));
}

/** Seconds since 1970 of a time of today, or of yesterday where that would lie ahead. */
function at(time: string | undefined): number {
  const [hour = 0, minute = 0, second = 0] = (time ?? '').split(':').map(Number);
  const seconds = new Date().setHours(hour, minute, second, 0) / 1000;
  return seconds > Date.now() / 1000 + 60 ? seconds - 86_400 : seconds;
}

/** What the tests look at is there, so that the page is opened after it. */
async function recorded(): Promise<boolean> {
  const from = Math.floor(Date.now() / 1000) - 300;
  const ask = async <T>(path: string) => (await (await fetch(`${daemon.url}/api/v1/${path}&from=${from}`, { headers: { authorization: `Bearer ${daemon.token}` } })).json()) as T;
  const map = await ask<RecordedMap>('history/latency?object=lun:vm01&step=10');
  const columns = columnsOf(map, map.read ?? []);
  const { lines = [] } = await ask<Partial<History>>('history?object=lun:vm01&metric=read_queue_p99,write_queue_p99&step=10');
  const staged = lines.every((line) => line.mean.filter((value) => value !== null).length >= 2);
  return columns.length >= 2 && (columns[0]?.at ?? Infinity) < Date.now() / 1000 - 15 && lines.length === 2 && staged;
}

describe('what was recorded', { skip }, () => {
  before(async () => {
    await daemon.start();
    daemon.run('share', 'create', 'vm01', '--size', '64M', '--target', 'vms', '--for', ESX, '--cache', 'write-back');
    daemon.run('lun', 'set', 'vm01', 'read_cache=8MiB');
    daemon.load(ESX, 11, 1, 'vms', 0, '-o4', '-w30', '-g2000');
    await until('two maps of the LUN are recorded, the older one well before now', recorded, LATE_MS);
    browser = await Browser.open(daemon.url);
    await enter(browser, daemon.token);
    page().on('request', (request) => {
      if (request.url().includes('/history')) asked.push(request.url());
    });
    opened = Date.now() / 1000;
  });
  after(async () => {
    await browser.close();
    await daemon.stop();
    browser.well();
  });

  it('shows a LUN how long commands took before the page was opened', async () => {
    await browser.go('/luns/vm01');
    await button('Latency over time as a table').click();
    const all = await rows(/^Latency over time, as a table/, (cells) => at(cells[0]) < opened - 10 && /≤ .*: [1-9]/.test(cells[1] ?? ''));
    assert.ok(all.length >= 1);
    await button('Latency over time as a map').click();
    await page().getByRole('application', { name: /^Latency over time/ }).focus();
    await page().keyboard.press('ArrowLeft');
    await text(/commands, up to .* the fastest/).waitFor();
  });

  it('shows how long commands took in the part of the past that is chosen, and that nothing was recorded before there was anything', async () => {
    const now = Math.floor(Date.now() / 1000);
    const card = page().locator('section', { hasText: 'Latency over time' });
    const map = page().getByRole('application', { name: /^Latency over time/ });
    // The daemon was not there yet.
    await browser.go(`/luns/vm01?between=${now - 7_200}-${now - 6_600}`);
    await card.getByText(/^the time from .* to /).waitFor();
    await map.blur();
    await card.getByText('Nothing was recorded of this time.').waitFor();
    await map.focus();
    await page().keyboard.press('ArrowLeft');
    await text(/ · nothing recorded$/).waitFor();
    assert.equal(await text(/ · no command$/).count(), 0);
    assert.ok(asked.some((url) => url.includes('/history/latency') && url.includes(`from=${now - 7_200}&to=${now - 6_600}`)), asked.join('\n'));
    // How many were in flight is of that time as well, and says so.
    const often = page().locator('section', { hasText: 'How large, and how many at once' });
    await often.getByText(/Commands in flight: the part of the time from .* to /).waitFor();
    await often.getByText('nothing recorded', { exact: true }).waitFor();
    // A part of it, which is over: what came since is not in it.
    const [from, to] = [now - 300, Math.floor(opened)];
    await browser.go(`/luns/vm01?between=${from}-${to}&table=Latency+over+time`);
    const all = await rows(/^Latency over time, as a table/, (cells) => /≤ .*: [1-9]/.test(cells[1] ?? ''));
    for (const [time] of all) assert.ok(at(time) >= from - 20 && at(time) <= to, `${time} is in the part that was chosen`);
    await browser.go('/luns/vm01');
  });

  it('shows a LUN and the node what they did before the page was opened, in charts that go on live', async () => {
    for (const path of ['/luns/vm01', '/']) {
      await browser.go(path);
      await button('IOPS as a table').click();
      await rows(/^IOPS,/, (cells) => at(cells[0]) < opened - 10 && /[1-9]/.test(cells[1] ?? ''));
      await rows(/^IOPS,/, (cells) => at(cells[0]) >= Math.ceil(opened));
      await button('IOPS as a chart').click();
    }
    await browser.go('/luns/vm01');
  });

  it('shows how large operations were, each counted, and how many at once, of the hour before', async () => {
    await button('Sizes and queue as a table').click();
    const size = page().locator('section', { hasText: 'How large, and how many at once' }).locator('table').first();
    await size.getByRole('cell', { name: '4 KiB', exact: true }).waitFor();
    const often = async () => Number((await size.locator('tbody tr', { hasText: '4 KiB' }).locator('td').nth(1).textContent())?.replaceAll(',', ''));
    const all = await often();
    const { ops } = JSON.parse(daemon.run('lun', 'show', 'vm01', '-o', 'json')) as { ops: { read: { ops: number } } };
    assert.ok(all > 2 && all <= ops.read.ops, `${all} of ${ops.read.ops} reads`);
    await button('while shown').click();
    await size.getByRole('cell', { name: '4 KiB', exact: true }).waitFor();
    assert.ok((await often()) < all);
    await button('since start').click();
  });

  it('shows percentiles of stages over time, p99 or p50', async () => {
    await charted('Stages of reads, p99');
    await charted('Stages of writes, p99');
    await button('p50').click();
    await charted('Stages of reads, p50');
    assert.match(page().url(), /percentile=p50/);
    assert.ok(asked.some((url) => url.includes('read_queue_p50')));
  });

  it('shows what the read cache had', async () => {
    const all = await charted('Read cache');
    assert.ok(all.length > 0);
  });

  it('shows what a host and a target did, reads and writes apart, with stages, and keeps the span in the address', async () => {
    for (const path of ['/hosts/esx01', '/targets/vms']) {
      await browser.go(path.replace('esx01', (JSON.parse(daemon.run('host', 'ls', '-o', 'json')) as { name: string }[])[0]?.name ?? ''));
      const all = await charted('IOPS');
      assert.ok(all.some((cells) => cells.slice(1).every((cell) => /[1-9]/.test(cell))), 'reads and writes');
      await charted('Latency of reads');
      await charted('Latency of writes');
      const before = asked.length;
      const staged = await charted('Stages of reads, p99');
      assert.ok(staged.some((cells) => /[1-9]/.test(cells[1] ?? '')), 'the backend');
      assert.equal(staged[0]?.length, 4, 'time, backend, queue and network');
      await charted('Stages of writes, p99');
      await button('p50').click();
      await charted('Stages of reads, p50');
      assert.ok(asked.slice(before).some((url) => /object=(host|target).*read_backend_p50/.test(url)), asked.slice(before).join('\n'));
      assert.deepEqual(await browser.axe(`${path} with stages as tables`), []);
      await button('p99').click();
      await button('1 d').click();
      await page().waitForURL(/span=86400/);
      // Of a day each point has its date, and all points are there.
      const [time] = await rows(/^IOPS, all points/, (cells) => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(cells[0] ?? ''));
      assert.ok(time);
      await button('1 h').click();
    }
    assert.ok(asked.some((url) => /object=target%3Avms.*step=144/.test(url)), asked.join('\n'));
  });

  it('shows a pool its space, its journal with the mark of the alert, and what was destaged', async () => {
    // From all pools to one: the same charts under other titles.
    await browser.go('/pools');
    await charted('Space: default');
    await browser.go('/pools/default');
    const space = await charted('Space');
    assert.ok(space.every((cells) => cells[1] === '–' || cells[1] !== cells[2]), `used and size: ${space.at(-1)?.join()}`);
    const used = await charted('Journal in use');
    assert.ok(used.some((cells) => cells[2] === '80 %'), 'the mark');
    await charted('Into the journal, and destaged');
    // Or what comes within a day, where something else fills this machine's disk just now.
    await page().getByText(/^too little history for a forecast|^full in .* at the rate of the last hour$/).first().waitFor();
    assert.deepEqual(await browser.axe('a pool with tables'), []);
    await button('Space as a chart').click();
    assert.deepEqual(await browser.axe('a pool with charts'), []);
  });
});
